"""Merging the shards of a run: where their records are, how they are copied, and what is copied with them."""
