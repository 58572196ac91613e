"""pixie-qa: datasets for instrumented applications."""
