"""Checks of recorded conversations, and the texts extracted from them."""
