"""What model servers have in common: they answer, and write no log."""

from __future__ import annotations

import json


class Quiet:
    """What a BaseHTTPRequestHandler does in all of them: it answers by `say`."""

    def log_message(self, *_):
        pass

    def say(self, code, body):
        """Answer with bytes as they are, or with an object in JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
