"""From a suite to a finished run: plan the cells, run each once, judge them, resume, judge again."""
