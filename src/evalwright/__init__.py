"""evalwright tests LLM agents and applications: cases in, traces, results and decisions out.

PYTEST_DONT_REWRITE, which pytest else warns of where this was imported before it.
"""

__version__ = "0.1.0"
