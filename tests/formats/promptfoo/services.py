"""A service on this machine that a provider can ask."""

from __future__ import annotations

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@contextmanager
def service(answer=lambda method, path, body: b'{"a": "b"}', headers=None, status=201, sends=("X-Part", "7")):
    """The address of a service on this machine, and the requests that it got; `headers` gets theirs, and it `sends`
    one itself."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            requests.append((self.command, self.path, body, self.headers.get("Content-Type")))
            if headers is not None:
                headers.append(dict(self.headers))
            self.send_response(status)
            self.send_header(*sends)
            self.end_headers()
            self.wfile.write(answer(self.command, self.path, body))

        do_GET = do_POST = answer

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()
