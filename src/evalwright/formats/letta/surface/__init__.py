"""The classes and decorators that the code of Letta suites imports."""
