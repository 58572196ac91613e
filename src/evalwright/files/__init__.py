"""Bytes to plain values and back, and durable ways to write them."""
