"""Regular expressions as JavaScript means them."""
