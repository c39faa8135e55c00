"""Malformed WebSocket frames after a valid handshake."""

import json
import socket
import struct
import time

import wire

PATH = "/ws/executions/{}"
HANDSHAKE = {"Host": "x", "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
             "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
# Codes that may be sent, RFC 6455 section 7.4.
CODES = {*range(1000, 1004), *range(1007, 1015), *range(3000, 5000)}


def frame(random, opcode, payload, fin=True, reserved=0, length=None, masked=True):
    """Returns one frame of a client, with a random mask."""
    size = len(payload) if length is None else length
    first = (0x80 if fin else 0) | reserved << 4 | opcode
    bit = 0x80 if masked else 0
    if length is None and size < 126:
        head = bytes([first, bit | size])
    elif length is None and size < 2**16:
        head = bytes([first, bit | 126]) + struct.pack(">H", size)
    else:
        head = bytes([first, bit | 127]) + struct.pack(">Q", size % 2**64)
    if not masked:
        return head + payload
    mask = random.randbytes(4)
    return head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))


def message(random, token):
    """Returns a text that is similar to messages of the protocol."""
    sequence = random.choice([0, 1, -1, 2**53, 2**64 - 1, 2**64, 1.5, "0", None, [], {}])
    fields = {"type": random.choice(["subscribe", "subscribe", "ping", "pong", "Subscribe", "", None, 1, ["subscribe"]]),
              "token": random.choice([f"Bearer {token}", token, "Bearer ", "", None, 1, "Bearer \u0000", "x" * 9000]),
              "lastSequence": sequence, "x": {}}
    for name in random.sample(list(fields), random.randrange(3)):
        del fields[name]
    text = json.dumps(fields).encode()
    kind = random.randrange(10)
    if kind == 0:
        return text[:random.randrange(len(text))]
    if kind == 1:
        return b"[" * random.choice([10, 200, 16_000])
    if kind == 2:
        return text.replace(b'"', b'"\xff', 1)
    if kind == 3:
        return b'{"type":"ping"}' + b" " * random.choice([10, 16_000, 17_000, 100_000])
    return text


def step(random, token):
    """Returns one frame, valid or not."""
    kind = random.randrange(16)
    if kind < 5:
        return frame(random, TEXT, message(random, token))
    if kind == 5:
        return frame(random, random.choice([0, 2, 3, 7, 11, 15]), random.randbytes(random.randrange(200)))
    if kind == 6:
        return frame(random, TEXT, message(random, token), reserved=random.randrange(1, 8))
    if kind == 7:
        return frame(random, TEXT, message(random, token), masked=False)
    if kind == 8:
        size = random.choice([2**14, 2**16, 2**31, 2**32, 2**63, 2**64 - 1])
        return frame(random, random.choice([1, 2, 9]), random.randbytes(100), length=size)
    if kind == 9:
        return frame(random, random.choice([PING, PONG, CLOSE]), random.randbytes(random.choice([0, 1, 125, 126, 2000])))
    if kind == 10:
        return frame(random, random.choice([PING, CLOSE]), b"x", fin=False)
    if kind == 11:
        code = struct.pack(">H", random.choice([0, 999, 1000, 1004, 1005, 1006, 1015, 1016, 2999, 3000, 4999, 5000, 65535]))
        return frame(random, CLOSE, code + random.choice([b"", b"bye", b"\xff\xfe", b"x" * 123]))
    if kind == 12:
        return frame(random, TEXT, random.choice([b"\xff", b"\xed\xa0\x80", b"\xc3", b"\xf4\x90\x80\x80"]))
    if kind == 13:
        return random.randbytes(random.randrange(60))
    return fragments(random, token)


def fragments(random, token):
    """Returns a fragmented message: complete, without an end, or with other frames in between."""
    text, parts = message(random, token), random.choice([2, 3, 50, 2000])
    size = len(text) // parts + 1
    out = bytearray()
    for number in range(parts):
        opcode = TEXT if number == 0 or random.randrange(40) == 0 else 0
        out += frame(random, opcode, text[number * size:(number + 1) * size], fin=number == parts - 1 and random.randrange(4) > 0)
        if random.randrange(parts) == 0:
            out += frame(random, PING, b"between")
    return bytes(out)


def handshake(random, path):
    headers = dict(HANDSHAKE)
    if random.randrange(12) == 0:
        del headers[random.choice(list(headers))]
    if random.randrange(12) == 0:
        headers[random.choice(list(headers))] = random.choice(["", "x", "\x00", "13, 13", "y" * 9000])
    if random.randrange(12) == 0:
        headers.update({"Sec-WebSocket-Extensions": "permessage-deflate; x=" + "9" * 50, "Sec-WebSocket-Protocol": "a, b, \xff"})
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {content}" for name, content in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def draw_with(token, executions):
    def draw(random):
        opening = handshake(random, PATH.format(random.choice(executions)))
        frames = [step(random, token) for _ in range(random.randrange(1, 8))]
        if random.randrange(2):
            frames.insert(0, frame(random, TEXT, json.dumps({"type": "subscribe", "token": f"Bearer {token}"}).encode()))
        return opening, frames, random.randrange(4)
    return draw


def talk(address, opening, frames, pause_at):
    """Sends the handshake, waits for the response, and sends the frames; returns the head and the rest of the received bytes."""
    with socket.create_connection(address, timeout=wire.CASE_SECONDS) as one:
        one.sendall(opening)
        got = bytearray()
        while b"\r\n\r\n" not in got:
            part = one.recv(65536)
            if not part:
                return bytes(got), b""
            got += part
        head, _, rest = bytes(got).partition(b"\r\n\r\n")
        try:
            for number, piece in enumerate(frames):
                one.sendall(piece)
                if number == pause_at:
                    time.sleep(0.002)  # The rest is sent in another packet.
            one.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # The server has closed the connection.
        return head, rest + wire.received(one)


def wrong_in(got):
    """Returns what is wrong with the frames of a server, or None. The last one may be truncated by the end of the connection."""
    at = 0
    while at + 2 <= len(got):
        first, size = got[at], got[at + 1]
        at += 2
        if first & 0x70 or size & 0x80 or first & 0xf not in (0, TEXT, CLOSE, PING, PONG):
            return f"the server sent a frame that begins {got[at - 2:at].hex()}"
        if size >= 126:
            width = 2 if size == 126 else 8
            size = int.from_bytes(got[at:at + width], "big")
            at += width
        payload = got[at:at + size]
        at += size
        if first & 0xf == TEXT and len(payload) == size and not is_message(payload):
            return f"the server sent {payload[:100]!r}"
        if first & 0xf == CLOSE and len(payload) >= 2 and int.from_bytes(payload[:2], "big") not in CODES:
            return f"the server closed with {payload[:2].hex()}"
    return None


def is_message(payload):
    try:
        return "type" in json.loads(payload)
    except ValueError:
        return False


def hostile_frames(stage):
    """Fuzz: frames of any kind after a handshake are answered or close the connection, with little memory."""
    workflow = stage.workflow([{"id": "ask", "type": "approval", "config": {"message": "?"}}], "waits")
    status, begun = stage.run(workflow, role="owner", wait=False)
    assert status == 202, begun
    token = stage.server.tokens["viewer"]
    executions = [begun["executionId"]] * 3 + ["exec_" + "0" * 32, "x"]

    def judge(case):
        head, got = talk(stage.server.address, *case)
        status = head[9:12]
        if status == b"101":
            return wrong_in(got)
        return f"the handshake is answered {status.decode()}" if status >= b"500" else None

    wire.repeat(stage, draw_with(token, executions), judge)


hostile_frames.flags = wire.FLAGS
ATTACKS = [hostile_frames]
