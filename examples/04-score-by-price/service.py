"""The outside service of this example: says at /prices what stands in prices.json. python service.py [PORT]"""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PRICES = Path(__file__).with_name("prices.json")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = PRICES.read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8765), Handler).serve_forever()
