"""Targets and judges of AgentEvals files: what their providers do when a run asks them."""
