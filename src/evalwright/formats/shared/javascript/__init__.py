"""Regular expressions with the meaning that they have in JavaScript."""
