"""The server of `evalwright view` in a process of its own."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from urllib.request import urlopen

import pytest

from viewer.runs import made_run


@pytest.mark.slow("a server in a process of its own")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_is_told_to_end_ends_well(tmp_path, number):
    run = made_run(tmp_path, trials=1)
    command = [sys.executable, "-m", "evalwright", "view", str(run), "--port", "0", "--no-open", "--no-token"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().strip()
        with urlopen(address, timeout=60) as answer:  # also starts the threads in which pages are made
            assert b"<h1>shop</h1>" in answer.read()
        if socket.has_dualstack_ipv6():  # `localhost` is this address for some programs
            with urlopen(address.replace("127.0.0.1", "[::1]"), timeout=60) as answer:
                assert answer.status == 200
        server.send_signal(number)
        assert server.communicate(timeout=60) == ("", "")
        assert server.returncode == 0
    finally:
        server.kill()
        server.communicate()
