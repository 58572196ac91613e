"""evalwright tests LLM agents and applications: cases in, traces, results and decisions out."""

__version__ = "0.1.0"
