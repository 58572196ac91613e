"""A service that is busy as often as a test says."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic

from evalwright.model.plan import EvaluatorSpec

SAYS_FINE = [EvaluatorSpec("fine", "contains_text", {"all_of": ["fine"]})]


@contextmanager
def service(answers):
    """Gives the n-th request the n-th answer, `(status, headers)`, and after the last one 200."""
    times = []

    class Service(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            times.append(monotonic())
            status, headers = answers[len(times) - 1] if len(times) <= len(answers) else (200, {})
            body = b'{"output": "fine"}'
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/x", times
        finally:
            server.shutdown()
