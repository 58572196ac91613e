"""Ways to call a system under test, one module each."""
