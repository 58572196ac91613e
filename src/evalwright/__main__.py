"""`python -m evalwright`: the command line."""

import sys

if not sys.flags.safe_path:
    # The working directory: its modules must not take the place of libraries, as they do not for the command.
    del sys.path[0]

from evalwright.cli import main

main()
