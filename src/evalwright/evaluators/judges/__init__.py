"""What judges share: showing data to a model, asking it, reading its reply, and putting several replies together."""
