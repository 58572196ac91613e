"""Clients for models: judges, simulated users, chat targets and embeddings all call models through here."""
