"""Steps of a cell that only some plans need; a plan without one neither calls nor imports its module."""
