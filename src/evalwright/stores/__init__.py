"""Where runs are kept: a folder of code for each kind of store, and what they share."""
