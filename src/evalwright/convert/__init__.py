"""From one eval format to another: what a suite says is written anew, read back, and held against the original."""
