"""The rules of assertions, a function for each type: `(question) -> Evaluation`, or an awaitable of one."""
