#!/usr/bin/env python3
"""A small HTTP server for the examples: pages of items, a route that fails once, one with a rate limit, one with a key.

    python3 examples/servers/shop.py --port 8900

Without --port the server uses a free port. It prints its address in the first line.

    GET  /items?page=1   five items a page, `next` is the next page or null; page 2 answers 503 the first time
    GET  /limited        answers 429 with `Retry-After: 1` to the first caller, then the price
    GET  /orders         the orders; requires `Authorization: Bearer open-sesame`
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

ITEMS = [{"id": n, "name": f"item {n}", "price": n * 3 % 17 + 1} for n in range(1, 13)]
PER_PAGE = 5
stumbled = set()


class Shop(BaseHTTPRequestHandler):
    def do_GET(self):
        url = urlparse(self.path)
        query = {key: values[-1] for key, values in parse_qs(url.query).items()}
        match url.path:
            case "/items":
                self.items(int(query.get("page", 1)))
            case "/limited":
                self.limited()
            case "/orders":
                self.orders()
            case _:
                self.answer(404, {"error": "not found"})

    def items(self, page):
        if page == 2 and self.stumbles("items"):
            return self.answer(503, {"error": "temporarily unavailable"})
        first = (page - 1) * PER_PAGE
        more = first + PER_PAGE < len(ITEMS)
        self.answer(200, {"items": ITEMS[first : first + PER_PAGE], "next": page + 1 if more else None})

    def limited(self):
        if self.stumbles("limited"):
            return self.answer(429, {"error": "too many requests"}, {"Retry-After": "1"})
        self.answer(200, {"price": 42})

    def orders(self):
        if self.headers.get("Authorization") != "Bearer open-sesame":
            return self.answer(401, {"error": "the key is missing or wrong"})
        self.answer(200, {"orders": [{"id": 1, "total": 12}, {"id": 2, "total": 30}]})

    def stumbles(self, what):
        """Returns True on the first call."""
        first = what not in stumbled
        stumbled.add(what)
        return first

    def answer(self, status, body, headers=None):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Shop)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
