"""Raw bytes on connections: malformed data from a client, and the reaction of the server."""

import os
import socket
import tempfile
import time

from server import memory_mib

# Time within which a connection must be answered or closed; far above the timeouts of a server with `FLAGS`.
CASE_SECONDS = 30
# Time within which most requests are answered.
ANSWER_SECONDS = 0.1
# Maximum memory of the server and its children in a debug build; about 100 without load.
MEMORY_MIB = 512
BATCH = 50
ANSWER_BYTES_MAX = 32 * 2**20
# The fuzzer waits for a server that waits for the rest of a request: short timeouts allow more cases.
FLAGS = ["--header-timeout", "1s", "--idle-timeout", "1s", "--request-timeout", "2s", "--write-timeout", "2s"]


class Unanswered(Exception):
    """The server neither answered nor closed the connection."""


def exchange(address, sent, half_close):
    """Sends all bytes on a new connection; returns everything that is received until its end."""
    with socket.create_connection(address, timeout=CASE_SECONDS) as one:
        first = b""
        try:
            one.sendall(sent)
            if half_close:
                # A server drops a request when its client has closed the connection, so wait a moment for the response.
                first = begun(one)
                one.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # The server may refuse the rest; its answer is still read.
        return first + received(one)


def begun(one):
    """Returns the beginning of a response; empty if none arrives soon, because the server waits for more."""
    one.settimeout(ANSWER_SECONDS)
    try:
        return one.recv(65536)
    except TimeoutError:
        return b""


def received(one):
    """Reads until the server closes the connection."""
    end, got = time.monotonic() + CASE_SECONDS, bytearray()
    while len(got) < ANSWER_BYTES_MAX:
        one.settimeout(max(0.01, end - time.monotonic()))
        try:
            part = one.recv(65536)
        except TimeoutError as error:
            raise Unanswered(f"the connection is open after {CASE_SECONDS} s, {len(got)} bytes were received") from error
        except OSError:
            break
        if not part:
            break
        got += part
    return bytes(got)


def repeat(stage, draw, judge):
    """Sends drawn cases until the time is over. `draw` returns a case, `judge` sends it and returns what is wrong, or
    None. After each batch, another tenant sends a request and the memory of the server is measured."""
    end = time.monotonic() + stage.seconds
    while time.monotonic() < end and len(stage.problems) < 5:
        for _ in range(BATCH):
            case = draw(stage.random)
            try:
                problem = judge(case)
            except Unanswered as error:
                problem = str(error)
            except OSError as error:
                problem = f"the connection failed: {error}"
            stage.cases += 1
            if problem:
                stage.problems.append(f"{problem}; the case is in {kept(case)}")
            if time.monotonic() > end:
                break
        is_well(stage)


def is_well(stage):
    try:
        status, _ = stage.server.owner().send("GET", "/api/v1/workflows", timeout=CASE_SECONDS)
        stage.check(status == 200, f"after a batch another tenant's request is answered {status}")
    except OSError as error:
        stage.check(False, f"after a batch another tenant's request is not answered: {error}")
    memory = memory_mib(stage.server.process.pid)
    stage.check(memory <= MEMORY_MIB, f"after a batch the server has {memory} MiB")


def kept(case):
    """Writes the case to a file; returns its name."""
    handle, name = tempfile.mkstemp(prefix="windlass-fuzz-", suffix=".txt")
    with os.fdopen(handle, "w") as file:
        file.write(repr(case))
    return name
