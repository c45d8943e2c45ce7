"""Changing an agent's store: copy, verify, switch, and everything that can go wrong on the way."""
