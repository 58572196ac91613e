"""Suite files: a folder for each format, `shared` for what several need, and finding and loading for all."""
