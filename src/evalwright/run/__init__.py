"""From a suite to a finished run: plan the cells, run each once, evaluate them, resume, re-evaluate."""
