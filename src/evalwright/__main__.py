"""`python -m evalwright`: the command line."""

from evalwright.cli import main

main()
