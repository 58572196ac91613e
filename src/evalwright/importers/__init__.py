"""Conversations, spans and labels that were recorded elsewhere: one module for each input format."""
