"""Memories in and out: JSON lines, tables, Markdown, and the jobs that carry them."""
