"""Reports of runs: one module per output, and the parts they share."""
