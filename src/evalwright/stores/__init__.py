"""Where runs are kept: one folder for each kind of store, and what they share."""
