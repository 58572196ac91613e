"""Steps of a cell that only some plans need."""
