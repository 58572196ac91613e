"""Similarity of texts by embeddings."""
