"""Measuring retrieval on labelled sets: how well it ranks, when it is silent, how it changes."""
