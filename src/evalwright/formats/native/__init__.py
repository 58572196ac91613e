"""The native format: `eval.yaml` of evalh, and what only it can say."""
