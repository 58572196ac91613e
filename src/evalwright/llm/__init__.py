"""Clients for models: judges, simulated users, chat targets and embeddings ask through here and nowhere else."""
