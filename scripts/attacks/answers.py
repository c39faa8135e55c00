"""HTTP server of the attacker, with responses that are meant to harm their reader."""

import functools
import gzip
import http.server
import json
import threading

MIB = 2**20


def deep(levels):
    """Returns nested objects with a few siblings at each level: `$..*..*` visits their product."""
    return b'{"a":' * levels + b"1" + b',"b":[1,2]}' * levels


def bomb(mib):
    """Returns many MiB of JSON that are transferred as a few KiB."""
    return gzip.compress(b'{"filler": "' + b"0" * (mib * MIB) + b'"}')


def wide(mib):
    """Returns a small text that becomes many values."""
    return b"[" + b",".join([b"[]"] * (mib * MIB // 3)) + b"]"


@functools.cache
def made(kind, size):
    return MAKERS[kind](size)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer()

    def do_POST(self):
        self.answer()

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kind, _, size = self.path.partition("?")[0].strip("/").partition("/")
        self.send_response(200)
        if kind == "echo":
            content = json.dumps({"echo": body.decode(errors="replace")}).encode()
        elif kind == "same":
            content = body
        else:
            content = made(kind, int(size))
        if kind == "bomb":
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        try:
            self.wfile.write(content)
        except OSError:
            self.close_connection = True

    def log_message(self, *_):
        pass


MAKERS = {"deep": deep, "bomb": bomb, "wide": wide}


def serve():
    """Starts the server; returns its URL."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"
