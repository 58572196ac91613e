"""What several formats need to read and write their files."""
