"""Suite files: one folder for each format, `shared` for what several need, finding and loading for all."""
