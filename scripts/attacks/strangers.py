"""Clients without a token, and tenants that try to reach objects of others."""

import http.client
import json
import resource
import socket
import time

from stage import http_node

SOCKETS = 2000
METHODS = 20_000
# The server closes silent connections after its `header-timeout` of 10 s.
SILENCE_SECONDS = 20


def silent_sockets(stage):
    """Connections: silent connections are closed, and leave file descriptors for the engine."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, SOCKETS + 2000), hard))
    opened = []
    try:
        for _ in range(SOCKETS):
            opened.append(socket.create_connection(stage.server.address, timeout=5))
    except OSError:
        pass  # The server may refuse further connections.
    end = time.monotonic() + SILENCE_SECONDS
    while time.monotonic() < end and not all(is_closed(one) for one in opened):
        time.sleep(0.2)
    closed = sum(is_closed(one) for one in opened)
    for one in opened:
        one.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    stage.check(closed >= len(opened) * 0.99, f"{len(opened) - closed} of {len(opened)} silent sockets stay open")


def is_closed(one):
    one.setblocking(False)
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def odd_methods(stage):
    """Metrics: names of methods do not become labels of metrics."""
    connection = http.client.HTTPConnection(*stage.server.address, timeout=30)
    end = time.monotonic() + stage.seconds
    for number in range(METHODS):
        try:
            connection.request(f"M{number:X}", "/healthz")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            connection.close()
        if time.monotonic() > end:
            break
    status, text = stage.server.client().send("GET", "/metrics")
    if status != 200:
        status, text = stage.server.owner().send("GET", "/metrics")
    stage.check(len(str(text)) < 2**20, f"{len(str(text))} bytes of metrics after {number + 1} odd methods")


def unauthenticated_streams(stage):
    """Connections: a WebSocket does not count as a stream before it is authenticated."""
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    missing = "exec_" + "0" * 32
    opened = [raw_request(stage, f"/ws/executions/{missing}", upgrade) for _ in range(STREAMS * 3)]
    # An authenticated client receives the error that the execution does not exist, not that there are too many streams.
    token = {"Authorization": f"Bearer {stage.server.tokens['viewer']}"}
    status = status_of(raw_request(stage, f"/api/v1/executions/{missing}/stream", token))
    for one in opened:
        one.close()
    stage.check(status == "404", f"unauthenticated WebSockets fill the places of streams: {status}")


STREAMS = 100
unauthenticated_streams.flags = ["--max-streams", str(STREAMS)]


def raw_request(stage, path, headers):
    """Sends the head of a request; returns its socket."""
    one = socket.create_connection(stage.server.address, timeout=10)
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in headers.items())]
    one.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    return one


def status_of(one):
    try:
        return one.recv(64).decode(errors="replace").split(" ")[1]
    except (OSError, IndexError) as error:
        return repr(error)
    finally:
        one.close()


def hooks_of_others(stage):
    """Hooks: a path of another tenant's hook cannot be taken over."""
    def hook(path):
        trigger = {"config": {"triggerMode": "webhook", "webhookConfig": {"path": path, "requireAuth": False}}}
        return stage.workflow([{"id": "keep", "type": "filter", "config": {"dataSource": "{{ [1] }}", "condition": "true"}}],
                              f"hook-{path.strip('/')}", trigger=trigger)
    _, older = stage.upload(hook("/mine"))
    status, theirs = stage.upload(hook("/victim"), client=stage.server.owner())
    stage.check(status == 201, f"the victim's hook was refused: {theirs}")
    stage.server.attacker("developer").send("PUT", f"/api/v1/workflows/{older.get('id')}", json.dumps(hook("/victim")))
    status, begun = stage.server.client().send("POST", "/hooks/victim", {})
    found, _ = stage.server.owner().send("GET", f"/api/v1/executions/{begun.get('executionId', 'none')}")
    stage.check(status == 202 and found == 200, f"the hook of `default` was taken over: {status} {str(begun)[:200]}")


def weaker_approvals(stage):
    """Approvals: a rejected approval takes no plain edge, for every input of the caller."""
    nodes = [{"id": "start", "type": "trigger"}, {"id": "ask", "type": "approval", "config": {"message": "Pay?"}},
             {"id": "pay", "type": "filter", "config": {"dataSource": "{{ [1] }}", "condition": "true"}}]
    edges = [{"source": "start", "target": "ask"}, {"source": "ask", "target": "pay"}]
    status, made = stage.upload({"name": "payment", "nodes": nodes, "edges": edges})
    assert status == 201, made
    for mode in ("fail_fast", "continue_on_error", "collect_errors"):
        status, answer = stage.start(made["id"], failureMode=mode)
        if status != 200:
            continue
        path = f"/api/v1/executions/{answer['executionId']}"
        status, rejected = stage.server.attacker("owner").send("POST", f"{path}/actions/ask/complete", {"outcome": "Failed"})
        stage.check(status == 200, f"{mode}: the approval cannot be rejected: {rejected}")
        end = time.monotonic() + 10
        seen = {}
        while time.monotonic() < end and seen.get("status") in (None, "running", "paused", "queued"):
            seen = stage.server.attacker("owner").send("GET", path)[1]
        paid = [node for node in seen.get("nodeExecutions", []) if node.get("nodeId") == "pay" and node.get("status") == "completed"]
        stage.check(not paid, f"{mode}: the payment was made after a rejection")


def hook_floods(stage):
    """Hooks: hooks without a token have a limit of their own."""
    trigger = {"config": {"triggerMode": "webhook", "webhookConfig": {"path": "/flood", "requireAuth": False}}}
    status, made = stage.upload(stage.workflow([http_node(f"{stage.url}/echo")], "flood", trigger=trigger))
    tenant, seen = stage.server.tenant, set()
    client, end = stage.server.client(), time.monotonic() + stage.seconds
    while time.monotonic() < end and 429 not in seen:
        for path in ("/hooks/flood", f"/hooks/{tenant}/flood"):
            try:
                seen.add(client.send("POST", path, {})[0])
            except OSError:
                client.close()
    stage.check(429 in seen, f"hooks without a token were never limited: {sorted(seen)}")


# A rate that this client exceeds on any machine.
hook_floods.flags = ["--hook-rate-limit", "5"]


ATTACKS = [silent_sockets, odd_methods, unauthenticated_streams, hooks_of_others, weaker_approvals, hook_floods]
