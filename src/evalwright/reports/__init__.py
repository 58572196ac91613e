"""What people and programs read of a run: one module per format, and the parts they share."""
