"""Folders for cells: filled before a cell, compared after it, removed at the end."""
