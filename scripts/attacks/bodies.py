"""Malformed requests: framing, heads and bodies, byte by byte."""

import gzip
import json
import zlib

import wire
from routes import PLAYBOOK, furnish, filled

METHODS = [b"POST", b"PUT", b"PATCH", b"POST", b"POST", b"GET", b"DELETE", b"HEAD", b"OPTIONS", b"TRACE", b"CONNECT", b"", b"post",
           b"P\x00ST", b"X" * 5000]
TYPES = [b"application/json"] * 6 + [
    b"application/yaml", b"application/yaml", b"application/json; charset=utf-16", b"application/json; charset=\xff",
    b"application/vnd.x+json", b"text/plain", b"multipart/form-data; boundary=", b"application/x-www-form-urlencoded", b"",
    b"application/json\x00", b"a" * 9000]
ENCODINGS = [b"gzip", b"deflate", b"br", b"zstd", b"gzip, gzip", b"identity", b"x"]
PIECES = [b"{", b"}", b"[", b"]", b",", b":", b'"', b'"a"', b"1", b"-", b"1e999", b"null", b"true", b"\\u0000", b"\\ud800", b"\xff",
          b"\x00", b"\n", b'"inputs"', b'"options"', b'"metadata"', b'"workflow"', b'"name"', b"&a ", b"*a", b"<<: ", b"- ", b"\xef\xbb\xbf"]
WORDS = ["inputs", "options", "async", "name", "value", "role", "tenantId", "metadata", "workflow", "nodes", "edges", "id", "type",
         "config", "definition", "limits", "rateLimit", "x", "", "$artifact", "\u0000", "é" * 20]
# Bodies that routes accept.
GOOD = [{"inputs": {"a": [1, {"b": None}]}, "options": {"async": True}}, {"value": "a-long-value"}, {"name": "ann", "role": "viewer"},
        {"name": "Other"}, {"limits": {"rateLimit": 5}}, {"reason": "why"}, {"outcome": "Completed", "output": {"a": 1}}, {"context": {"a": 1}}]
LARGE_BYTES = 3 * 2**20
BOMB = gzip.compress(b" " * 64 * 2**20, 9)


def value(random, depth=4):
    """Returns any JSON value, not deeper than `depth`."""
    kind = random.randrange(9 if depth else 6)
    if kind == 0:
        return random.choice([None, True, False, 0, -1, 2**63, 2**64, 1e308, -0.0, 10**400])
    if kind < 4:
        return random.choice(WORDS)
    if kind < 6:
        return random.choice(["\u0000", "\ud800", "{{ x }}", "../..", "x" * random.randrange(3000), "exec_" + "0" * 32])
    if kind == 6:
        return [value(random, depth - 1) for _ in range(random.randrange(4))]
    return {random.choice(WORDS): value(random, depth - 1) for _ in range(random.randrange(5))}


def deep(random):
    count = random.choice([10, 63, 64, 65, 127, 128, 1000, 100_000, 1_000_000])
    opening, closing = random.choice([(b"[", b"]"), (b'{"a":', b"}"), (b'{"inputs":[', b"]}")])
    return opening * count + b"1" + closing * random.choice([count, count, 0])


def wide(random):
    count = random.choice([1000, 50_000, 200_000])
    if random.randrange(2):
        return b"[" + b",".join([random.choice([b"1", b"{}", b"[]", b'""', b"null"])] * count) + b"]"
    same = random.randrange(2)
    return b"{" + b",".join(b'"k%d":{}' % (0 if same else number) for number in range(count)) + b"}"


def yaml_bomb(random):
    levels = random.choice([5, 12, 30])
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines).encode()


def body(random):
    kind = random.randrange(18)
    if kind > 13:
        return changed(random, json.dumps(random.choice(GOOD)).encode())
    if kind == 0:
        return random.randbytes(random.randrange(3000))
    if kind == 1:
        return b"".join(random.choice(PIECES) for _ in range(random.randrange(80)))
    if kind == 2:
        return deep(random)
    if kind == 3 and random.randrange(4) == 0:
        return wide(random)
    if kind == 4:
        return random.choice([b"9", b"0.", b"1e", b'"\\u00', b" ", b"\n", b"\t"]) * random.choice([10, 5000, LARGE_BYTES // 4])
    if kind == 5:
        return yaml_bomb(random)
    if kind == 6:
        return json.dumps(value(random)).encode(random.choice(["utf-16", "utf-32", "latin-1"]), "replace")
    if kind == 7:
        return b"x" * random.choice([2**20, 2**22, 2**22 + 1, 2**23])
    if kind == 8:
        return changed(random, random.choice([PLAYBOOK.encode(), json.dumps(random.choice(GOOD)).encode()]))
    if kind == 9:
        return b""
    return changed(random, json.dumps(value(random)).encode("utf-8", "replace"))


def changed(random, text):
    """Returns the text, mostly unchanged."""
    if random.randrange(2) or not text:
        return text
    at, length = random.randrange(len(text)), random.randrange(6)
    return text[:at] + random.choice(PIECES) + text[at + length:]


def encoded(random, content):
    """Returns the body under a content encoding: valid, wrong, or much larger when decoded."""
    kind = random.randrange(4)
    if kind == 0:
        return BOMB
    if kind == 1:
        return gzip.compress(content, 1)[:random.choice([None, 5, -4])]
    if kind == 2:
        return zlib.compress(content, 1)
    return content


def chunked(random, content):
    """Returns the body in chunks, with mistakes."""
    parts, at = [], 0
    while at < len(content) and len(parts) < 200:
        size = random.choice([1, 7, 1000, 65536])
        parts.append(content[at:at + size])
        at += size
    wrong = random.randrange(12)
    out = bytearray()
    for part in parts:
        size = b"%x" % len(part)
        if wrong == 0:
            size = random.choice([b"-1", b"zz", b"", b"f" * 16, b"f" * 17, b"0x5", b" 5 ", b"+5", b"5\x00", b"%x" % (len(part) + 3)])
        if wrong == 1:
            size += b";" + b"x" * random.choice([1, 100, 20_000]) + random.choice([b"", b"=\"", b"\r"])
        out += size + (b"\n" if wrong == 2 else b"\r\n") + part + (b"" if wrong == 3 else b"\r\n")
        if wrong < 2 and random.randrange(2):
            break
    if wrong == 4:
        return bytes(out)
    out += b"0\r\n"
    if wrong in (5, 6):
        out += b"".join(b"T%d: x\r\n" % n for n in range(random.choice([1, 99, 5000])))
    if wrong == 7:
        out += b"Content-Length: 5\r\nTransfer-Encoding: x\r\n: \x00\r\n"
    return bytes(out) + b"\r\n"


def framing(random, content):
    """Returns headers with the length of the body, and the body as it is sent."""
    kind, length = random.randrange(14), len(content)
    size = b"Content-Length: %d"
    if kind < 5:
        return [size % length], content
    if kind < 8:
        coding = random.choice([b"chunked"] * 6 + [b"gzip, chunked", b"chunked, chunked", b"chunked, x", b"xchunked", b"identity"])
        return [b"Transfer-Encoding: " + coding], chunked(random, content)
    if kind == 8:
        return [size % (length + random.choice([1, 1000, 2**40]))], content
    if kind == 9:
        return [size % random.randrange(length + 1)], content
    if kind == 10:
        wrong = random.choice([b"-1", b"+5", b"5, 5", b"0x10", b"", b"9" * 30, b"5\x00", b" 5", b"1e3"])
        return [b"Content-Length: " + wrong], content
    if kind == 11:
        return [size % length, size % random.choice([length, length + 1, 0])], content
    if kind == 12:
        return [size % length, b"Transfer-Encoding: chunked"], random.choice([content, chunked(random, content)])
    return [], content


def odd_headers(random):
    """Returns headers that no client sends."""
    kind = random.randrange(12)
    if kind == 0:
        return [b"X-%d: y" % n for n in range(random.choice([50, 99, 101, 1000, 20_000]))]
    if kind == 1:
        return [b"X-Long: " + b"y" * random.choice([8000, 100_000, 1_000_000])]
    if kind == 2:
        return [random.choice([b"X: a\x00b", b"X\x00: a", b": empty", b"no colon", b" folded: x", b"X : space", b"X: a\rb", b"X: \xff\xfe",
                               b"X: a\n b", b"\xc3\xa9: x"])]
    if kind == 3:
        return [b"Host: a", b"Host: b"]
    if kind == 4:
        return [random.choice([b"Expect: 100-continue", b"Expect: x", b"Upgrade: h2c", b"Connection: close, x, \x01", b"Range: bytes=0-",
                               b"Accept-Encoding: " + b"gzip," * 1000, b"Accept: \x00", b"Traceparent: 00-" + b"z" * 50,
                               b"X-Forwarded-For: " + b"1.1.1.1," * 3000, b"X-Request-Id: \x7f\xff", b"Idempotency-Key: " + b"k" * 5000])]
    return []


def head(random, token, paths):
    method, path = random.choice(paths) if random.randrange(5) else (random.choice(METHODS), b"/hooks/none")
    if random.randrange(12) == 0:
        method = random.choice(METHODS)
    kind = random.randrange(30)
    if kind == 0:
        path = random.choice([b"", b"*", b"//", b"/%00", b"/\x00", b"/" + b"a" * 70_000, b"http://x/api/v1/workflows", b"/../../etc", b"/\xff\xfe",
                              b"/api/v1/workflows?" + b"limit=1&" * 5000, b"/api/v1/workflows?limit=%zz&cursor=%ff", b"/ x y"])
    version = random.choice([b"HTTP/1.1"] * 20 + [b"HTTP/1.0", b"HTTP/9.9", b"HTTP/1.1 x", b""])
    authorizations = [b"Authorization: Bearer " + token] * 9 + [b"Authorization: Bearer \xff", b"Authorization: " + b"B" * 9000]
    lines = [method + b" " + path + b" " + version, b"Host: x", random.choice(authorizations)]
    lines.append(b"Content-Type: " + random.choice(TYPES))
    return lines + odd_headers(random)


def http2(random):
    """Returns random frames after the preface of HTTP/2."""
    out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    for _ in range(random.randrange(1, 12)):
        payload = random.randbytes(random.choice([0, 4, 5, 6, 8, 9, 100, 17_000]))
        length = random.choice([len(payload)] * 8 + [0, 2**24 - 1])
        stream = random.choice([0, 0, 1, 1, 2, 3, 2**31 - 1, 2**32 - 1])
        out += length.to_bytes(3, "big") + bytes([random.choice([4, *range(11), 255]), random.randrange(256)]) + stream.to_bytes(4, "big") + payload
    return out


def draw_with(token, paths):
    def draw(random):
        if random.randrange(15) == 0:
            return http2(random), True
        content, lines = body(random), head(random, token, paths)
        if random.randrange(8) == 0:
            lines.append(b"Content-Encoding: " + random.choice(ENCODINGS))
            content = encoded(random, content)
        headers, sent = framing(random, content)
        rest = lines[1:] + headers
        random.shuffle(rest)
        request = b"\r\n".join([lines[0], *rest]) + b"\r\n\r\n" + sent
        if random.randrange(12) == 0:
            request = request[:random.randrange(len(request) + 1)]
        if random.randrange(12) == 0 and len(request) < 2000:
            request *= random.randrange(2, 20)
        return request, random.randrange(50) > 0
    return draw


def statuses(answer):
    """Returns the statuses of the HTTP/1 responses whose heads can be found."""
    found, at = [], answer.find(b"HTTP/1.")
    while at >= 0:
        found.append(answer[at + 9:at + 12])
        at = answer.find(b"HTTP/1.", at + 9)
    return found


def paths_of(stage):
    """Returns routes with a body, with the parameters of their paths filled in; including routes of owners."""
    document, ids = stage.server.owner().send("GET", "/api/openapi.json")[1], furnish(stage)
    return [(method.upper().encode(), filled(path, ids).encode()) for path, item in document["paths"].items()
            for method in ("post", "put", "patch") if method in item] * 2 + [(b"GET", b"/api/v1/workflows"), (b"POST", b"/hooks/x")]


def hostile_bodies(stage):
    """Fuzz: framing, heads and bodies of any kind are answered or closed, with little memory."""
    token = stage.server.tokens["admin"].encode()

    def judge(case):
        answer = wire.exchange(stage.server.address, *case)
        wrong = [status for status in statuses(answer) if status >= b"500"]
        return f"answered {wrong[0].decode()}" if wrong else None

    wire.repeat(stage, draw_with(token, paths_of(stage)), judge)


hostile_bodies.flags = wire.FLAGS
ATTACKS = [hostile_bodies]
