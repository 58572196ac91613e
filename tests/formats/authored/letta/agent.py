def answer(message, ctx):
    return "Paris"


def grade(sample, submission):
    return 1.0
