"""Runnable examples: `python -m gputree.examples.<name>`; each is also a test."""
