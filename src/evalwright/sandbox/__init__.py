"""Where code and patterns of others run: in processes apart, and no longer than they may."""
