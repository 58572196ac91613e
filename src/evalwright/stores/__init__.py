"""Where runs are kept: one module per kind of place."""
