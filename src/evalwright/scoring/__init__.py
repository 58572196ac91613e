"""Pure functions from records to verdicts, summaries and comparisons."""
