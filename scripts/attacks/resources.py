"""Memory, disk, threads and slots that one tenant can take from the others."""

import json
import secrets
import socket
import time

import answers
from stage import http_node, sql_node

# Size of definitions and texts in requests: below the default limit of a body.
BODY_BYTES = 855_000


def schema_of_doubles(levels=45):
    """Returns a schema in which each level refers twice to the next: 2^levels evaluations."""
    definitions = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}, {"$ref": f"#/$defs/l{n + 1}"}]}
                   for n in range(levels)}
    return {"type": "object", "$defs": {**definitions, f"l{levels}": {"type": "object"}}, "allOf": [{"$ref": "#/$defs/l0"}]}


def schema_of_depth():
    """Returns a small schema whose cost doubles with each level of the value."""
    again = {"properties": {"x": {"$ref": "#/$defs/a"}}}
    return {"type": "object", "$defs": {"a": {"allOf": [again, dict(again)]}}, "properties": {"x": {"$ref": "#/$defs/a"}}}


def with_schema(stage, schema, name):
    trigger = {"config": {"manualConfig": {"inputPayload": schema}}}
    node = {"id": "keep", "type": "filter", "config": {"dataSource": "{{ [1] }}", "condition": "true"}}
    return stage.workflow([node], name, trigger=trigger)


def nested(levels):
    value = 1
    for _ in range(levels):
        value = {"x": value}
    return value


def exponential_schema(stage):
    """Schemas: a schema of 3 KB whose validation never ends, at a start and as a sub-workflow."""
    status, made = stage.run(with_schema(stage, schema_of_doubles(), "doubles"), {}, timeout=10)
    stage.check(status in (400, 422), f"a schema of 2^45 evaluations was not refused: {status} {str(made)[:200]}")
    status, made = stage.run(with_schema(stage, schema_of_depth(), "depth"), nested(60), timeout=10)
    stage.check(status in (400, 422), f"a value that takes 2^60 evaluations was not refused: {status} {str(made)[:200]}")
    parent = stage.workflow([{"id": "sub", "type": "workflow",
                              "config": {"workflowName": "depth", "inputs": nested(60)}}], "parent")
    stage.run(parent, {}, timeout=10)


def slow_patterns(stage):
    """Schemas: a pattern that takes exponential time in a backtracking engine."""
    schema = {"type": "object", "properties": {"text": {"type": "string", "pattern": "^(([a-z])+.)+[A-Z]([a-z])+$(?=x)?"}}}
    stage.run(with_schema(stage, schema, "pattern"), {"text": "a" * 60}, timeout=10)
    schema["properties"]["text"]["pattern"] = "^(a+)+$"
    stage.run(with_schema(stage, schema, "pattern2"), {"text": "a" * 60 + "!"}, timeout=10)


def jsonpath(stage):
    """JSONPath: a path that visits the product of all levels of a response."""
    node = http_node(f"{stage.url}/deep/60", responseMapping={"all": "$..*..*..*..*..*"})
    stage.at_once(3, lambda _: stage.run(stage.workflow([node], "paths"), {}, timeout=stage.seconds))


def sql_pointers(stage):
    """SQL: statements that read and write memory or settings of the process."""
    statements = ["SELECT fts3_tokenizer('x', x'4141414141414141')", "SELECT hex(fts3_tokenizer('simple'))",
                  "PRAGMA temp_store_directory = '/tmp'", "ATTACH '/etc/passwd' AS p", "SELECT load_extension('x')",
                  "PRAGMA writable_schema = 1", "VACUUM INTO '/tmp/windlass-attack.db'", "SELECT readfile('/etc/passwd')",
                  "CREATE VIRTUAL TABLE t USING fts3(tokenize=x)", "PRAGMA mmap_size = 1000000000000"]
    for statement in statements:
        status, answer = stage.run(stage.workflow([sql_node(statement, tables={})], "pointers"), {})
        ended = answer.get("status") if isinstance(answer, dict) else None
        refused = status != 200 or ended == "failed"
        stage.check(refused, f"`{statement}` was run: {str(answer)[:200]}")
        if not stage.check(stage.server.is_alive(), f"`{statement}` ended the server"):
            return


def sql_memory(stage):
    """SQL: statements that use memory and time without bound."""
    count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    statements = [count + "SELECT count(*) AS c FROM n", count + "SELECT group_concat(hex(zeroblob(100000))) AS c FROM n",
                  "CREATE TABLE big AS " + count + "SELECT i, zeroblob(1000000) AS z FROM n LIMIT 3000",
                  "SELECT zeroblob(1000000000) AS z", count + "SELECT i, randomblob(1000) AS r FROM n ORDER BY r",
                  "SELECT hex(randomblob(30000000)) || hex(randomblob(30000000)) AS x"]
    run = lambda n: stage.run(stage.workflow([sql_node(statements[n % len(statements)], tables={})], f"memory{n}"), {},
                              timeout=stage.seconds + 30)
    stage.at_once(len(statements), run)


def sql_disk(stage):
    """SQL: a database file that fills the disk."""
    statement = ("CREATE TABLE IF NOT EXISTS filler AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                 "SELECT i, zeroblob(1000000) AS z FROM n LIMIT 4000")
    node = sql_node(statement, database="filler.db")
    status, answer = stage.run(stage.workflow([node], "disk"), {}, timeout=stage.seconds + 60)
    failed = isinstance(answer, dict) and answer.get("status") == "failed"
    stage.check(status != 200 or failed, f"4 GB were written to a database: {str(answer)[:200]}")


def slots(stage):
    """Slots: endless steps use every slot."""
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS c FROM n"
    status, made = stage.upload(stage.workflow([sql_node(endless, tables={}, timeout=stage.seconds + 5)], "endless"))
    if status == 201:
        for _ in range(100):
            stage.start(made["id"], wait=False, timeout=10)
        time.sleep(stage.seconds)
        cancel_all(stage, made["id"])


def cancel_all(stage, workflow):
    client = stage.server.attacker("admin")
    status, found = client.send("GET", f"/api/v1/workflows/{workflow}/executions?limit=100")
    for execution in found.get("executions", []) if status == 200 else []:
        client.send("POST", f"/api/v1/executions/{execution['executionId']}/cancel", {"force": True})


def large_answers(stage):
    """Memory: responses that are small on the network and large in memory."""
    paths = ["bomb/1000", "wide/30", "bomb/300", "wide/10"]
    for kind, _, size in (path.partition("/") for path in paths):
        answers.made(kind, int(size))
    run = lambda n: stage.run(stage.workflow([http_node(f"{stage.url}/{paths[n % 4]}")], f"answers{n}"), {},
                              timeout=stage.seconds + 30)
    stage.at_once(8, run)


def definitions_to_check(stage):
    """Memory: large documents that a viewer sends for validation."""
    step = '{"step":"s","tool":{"kind":"noop","x":1},"next":"t"},'
    bodies = ['{"metadata":{"name":"x"},"workflow":[' + (step * (BODY_BYTES // len(step)))[:-1] + "]}",
              "a: &a [" + "x," * 2000 + "]\nb: [" + "*a," * 2000 + "]\n" + "#" * 800_000,
              "metadata: {name: x}\nworkflow:\n" + "".join(f"- {{step: s{n}, tool: {{kind: nop{n}}}, next: q{n}}}\n" for n in range(17_000)),
              "{" * 400_000, "[" * 400_000, "name: x\nnodes: [" + "{id: a}," * 100_000 + "]\nedges: []\n",
              json.dumps({"name": "x", "nodes": [{"id": f"n{n}", "type": "filter", "config": {"dataSource": "{{ a." + "b." * 20 + "c }}", "condition": "x"}} for n in range(5_000)], "edges": []})]

    def send(n):
        try:
            return stage.server.attacker("viewer").send("POST", "/api/v1/validate", bodies[n % len(bodies)], "application/yaml")[0]
        except OSError as error:
            return str(error)

    answers = stage.at_once(12, send)
    unexpected = [answer for answer in answers if answer not in (200, 400, 413, 422, 429, 503)]
    stage.check(not unexpected, f"unexpected answers: {unexpected[:3]}")


def marks_of_truncation(stage):
    """Time: a text of 900 kB that is slow to redact."""
    stage.server.attacker("admin").send("PUT", "/api/v1/secrets/MARKS", {"value": secrets.token_urlsafe(2000)})
    config = {"method": "POST", "body": "{{ inputs.text }}", "bodyType": "text",
              "authentication": {"type": "bearer", "token": "{{ MARKS }}"}}
    status, made = stage.upload(stage.workflow([http_node(f"{stage.url}/echo", **config)], "marks"))
    assert status == 201, made
    texts = ["…" * 300_000, "%" * 900_000, "\\u00" * 200_000, "\n" * 900_000, "a\n" * 400_000]
    stage.at_once(5, lambda n: stage.start(made["id"], {"text": texts[n]}, timeout=stage.seconds + 30))


def keychain(stage):
    """Storage: secrets written into definitions, each of them new."""
    def run(n):
        auth = {"type": "bearer", "token": secrets.token_urlsafe(45_000)}
        node = http_node(f"{stage.url}/echo", method="POST", authentication=auth)
        return stage.run(stage.workflow([node], f"keychain{n}"), {}, timeout=stage.seconds + 30)[0]
    for batch in range(5):
        stage.at_once(8, lambda n: run(batch * 8 + n))


def long_journal(stage):
    """Time: many readers of a long journal."""
    loop = {"id": "loop", "type": "loop", "config": {"loopType": "count", "dataSource": "20000", "maxIterations": 20000,
                                                     "parallelExecution": True, "maxParallel": 100}}
    body = {"id": "keep", "type": "filter", "config": {"dataSource": "{{ [1] }}", "condition": "true"}}
    definition = {"name": "long", "nodes": [{"id": "start", "type": "trigger"}, loop, body],
                  "edges": [{"source": "start", "target": "loop"}, {"source": "loop", "target": "keep", "sourceHandle": "body"}]}
    status, made = stage.upload(definition)
    assert status == 201, made
    status, answer = stage.start(made["id"], wait=False)
    if status != 202:
        return
    execution, end = answer["executionId"], time.monotonic() + stage.seconds
    paths = ["", "/events?limit=1000", "/evidence", "/logs?limit=1000"]

    def read(n):
        client = stage.server.attacker("viewer")
        while time.monotonic() < end:
            try:
                client.send("GET", f"/api/v1/executions/{execution}{paths[n % len(paths)]}", timeout=stage.seconds + 30)
            except OSError:
                pass
    stage.at_once(16, read)
    stage.server.attacker("admin").send("POST", f"/api/v1/executions/{execution}/cancel", {"force": True})


def deaf_viewers(stage):
    """Memory: viewers of many large results who do not read their responses."""
    step = {"step": "each", "loop": {"in": "{{ workload.items }}", "iterator": "item", "spec": {"mode": "parallel"}},
            "tool": {"kind": "noop", "result": {"n": "{{ iter.item }}", "text": "{{ workload.text }}"}}}
    status, made = stage.upload({"metadata": {"name": "heavy"}, "workload": {"items": [], "text": ""}, "workflow": [step]})
    assert status == 201, made
    inputs = {"items": list(range(400)), "text": "x" * 60_000}
    status, answer = stage.start(made["id"], inputs, timeout=stage.seconds + 60)
    if status != 200:
        return
    execution, end = answer["executionId"], time.monotonic() + stage.seconds
    client = stage.server.attacker("viewer")
    request = (f"GET /api/v1/executions/{execution} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\n\r\n").encode()
    deaf = []
    while time.monotonic() < end and len(deaf) < 100:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(tuple(client.address))
        connection.sendall(request)
        deaf.append(connection)
    time.sleep(max(0, end - time.monotonic()))
    for connection in deaf:
        connection.close()


def nesting(stage):
    """Depth: values nested as deeply as can be sent."""
    for levels in (90, 100, 110, 120, 123, 125, 127, 200, 5000):
        node = http_node(f"{stage.url}/deep/{levels}")
        stage.run(stage.workflow([node], "nesting"), {}, timeout=20)
        text = '{"inputs":{"x":' + "[" * levels + "]" * levels + '},"options":{"async":false}}'
        status, made = stage.upload(stage.workflow([node], "nesting-inputs"))
        if status == 201:
            try:
                stage.server.attacker("member").send("POST", f"/api/v1/workflows/{made['id']}/execute", text, timeout=20)
            except OSError as error:
                stage.check(False, f"{levels} levels: {error}")
    listed, _ = stage.server.attacker("viewer").send("GET", "/api/v1/executions?limit=100")
    stage.check(listed == 200, f"executions can no longer be listed: {listed}")


ALL_OF_H6 = [definitions_to_check, large_answers, sql_memory, keychain, marks_of_truncation, long_journal, deaf_viewers,
             sql_disk]


def everything(stage):
    """Resources: all of these attacks by one tenant at the same time."""
    stage.at_once(len(ALL_OF_H6), lambda n: ALL_OF_H6[n](stage))


ATTACKS = [exponential_schema, slow_patterns, jsonpath, sql_pointers, sql_memory, sql_disk, slots, large_answers,
           definitions_to_check, marks_of_truncation, keychain, long_journal, deaf_viewers, nesting, everything]
