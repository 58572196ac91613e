"""Bytes to plain values and back, and the durable ways to write them."""
