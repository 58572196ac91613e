"""Suite audit: would the evaluators of a suite notice if its system were wrong?"""
