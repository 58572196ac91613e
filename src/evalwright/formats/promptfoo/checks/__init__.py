"""The rules of assertions, a function for each type: `(question) -> Evaluation`, or something to be awaited."""
