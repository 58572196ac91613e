"""From one suite format to another: a suite is converted, read back and compared with the original."""
