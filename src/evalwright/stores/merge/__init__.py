"""Many shards of a run become one run: where their records are, how they are copied, and what comes with them."""
