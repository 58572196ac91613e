"""Ways to call a system under test, one module or folder each."""
