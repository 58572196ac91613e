"""A server on loopback that keeps what it is sent, for code that blocks."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver:
    def __init__(self, status, body, headers):
        self.status, self.body, self.headers = status, body, headers
        self.requests = []
        self.url = ""


@contextmanager
def receiving(status=200, body=b"{}", headers=None):
    received = Receiver(status, body, headers or {})

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers.get("content-length", 0))
            received.requests.append((self.path, dict(self.headers), self.rfile.read(length)))
            self.answer()

        def do_GET(self):
            received.requests.append((self.path, dict(self.headers), b""))
            self.answer()

        def answer(self):
            self.send_response(received.status)
            self.send_header("Content-Length", str(len(received.body)))
            for header in received.headers.items():
                self.send_header(*header)
            self.end_headers()
            self.wfile.write(received.body)

        def log_message(self, *_arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    received.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
