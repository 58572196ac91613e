"""Checks of structured answers: equality, fields, JSON, schemas."""
