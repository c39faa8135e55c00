"""Fills a data folder with rows of executions and measures the lists of the server; see `scripts/bench-lists`."""

import http.client
import json
import os
import random
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

DAYS = 30
WORKFLOWS = 20
REQUESTS = 40
# Number of executions with each end, out of 1,000.
SHARES = {"completed": 930, "failed": 60, "cancelled": 10}
RARE = 1_000
BATCH = 20_000

ENDS = {"completed": "true", "failed": "exit 1", "cancelled": "sleep 600"}


class Server:
    """A server process in a data folder."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    def __enter__(self):
        command = [self.binary, "serve", "--data", self.folder, "--listen", f"127.0.0.1:{self.port}"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if "listening on" in line:
                break
        else:
            sys.exit("error: the server ended before it accepted connections")
        self.token = Path(self.folder, "owner.token").read_text().strip()
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def send(self, method, path, body=None, token=None):
        """Sends a request; returns its response and its duration in milliseconds."""
        headers = {"authorization": f"Bearer {token or self.token}"}
        if body is not None:
            headers["content-type"] = "application/json"
        begin = time.perf_counter()
        self.connection.request(method, f"/api/v1{path}", None if body is None else json.dumps(body), headers)
        response = self.connection.getresponse()
        content = response.read()
        took = (time.perf_counter() - begin) * 1_000
        if response.status >= 300:
            sys.exit(f"error: {method} {path}: {response.status} {content[:400]}")
        return json.loads(content), took


def workflow(name, command):
    nodes = [{"id": "in", "type": "trigger"}, {"id": "do", "type": "shell", "config": {"command": command}}]
    return {"name": name, "nodes": nodes, "edges": [{"source": "in", "target": "do"}]}


def run_some(server):
    """Runs one execution with each end in each workflow; returns the id of a workflow."""
    first = None
    for number in range(WORKFLOWS):
        for end, command in ENDS.items():
            # Each workflow has three versions, one for each end.
            made, _ = (
                server.send("POST", "/workflows", workflow(f"flow {number}", command))
                if end == "completed"
                else server.send("PUT", f"/workflows/{made['id']}", workflow(f"flow {number}", command))
            )
            first = first or made["id"]
            started, _ = server.send("POST", f"/workflows/{made['id']}/execute", {"options": {"async": end == "cancelled", "tags": ["sample"]}})
            if end == "cancelled":
                server.send("POST", f"/executions/{started['executionId']}/cancel", {"force": True})
    while server.send("GET", "/executions?status=open")[0]["executions"]:
        time.sleep(0.05)
    return first


def fill(folder, count):
    """Copies the rows of ended executions with new ids and times, the newest last; returns the id of the parent."""
    conn = sqlite3.connect(Path(folder, "windlass.db"), isolation_level=None)
    conn.execute("PRAGMA synchronous = OFF")
    columns = {table: [row[1] for row in conn.execute(f"PRAGMA table_info({table})")] for table in ("executions", "heads")}
    rows = {table: {row[0]: row for row in conn.execute(f"SELECT {', '.join(columns[table])} FROM {table} ORDER BY key")} for table in columns}
    phase = columns["heads"].index("phase")
    groups = {}
    for key, head in rows["heads"].items():
        groups.setdefault(head[phase], []).append(key)
    # Phases are numbers in the order of the ends of `SHARES`, which all have occurred.
    by_size = dict(zip(SHARES, sorted(groups)))
    now = int(time.time() * 1_000)
    begin = now - DAYS * 86_400_000
    chance = random.Random(1)
    # The numbers of executions rise with their times of creation.
    conn.execute("UPDATE executions SET created_at = ?", [begin])
    conn.execute("UPDATE heads SET at = ?", [begin])
    parent = rows["executions"][min(rows["executions"])][columns["executions"].index("id")]
    place = {table: {name: at for at, name in enumerate(names)} for table, names in columns.items()}
    key = conn.execute("SELECT max(key) FROM executions").fetchone()[0]
    insert = {table: f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})" for table, names in columns.items()}
    ends = [end for end, share in SHARES.items() for _ in range(share)]
    for start in range(0, count, BATCH):
        executions, heads, tags = [], [], []
        for number in range(start, min(start + BATCH, count)):
            key += 1
            end = chance.choice(ends)
            # No execution failed in the last two days.
            at = begin + (now - begin) * number // count
            if end == "failed" and at > now - 2 * 86_400_000:
                end = "completed"
            template = chance.choice(groups[by_size[end]])
            execution, head = list(rows["executions"][template]), list(rows["heads"][template])
            execution[0] = head[0] = key
            execution[place["executions"]["id"]] = at.to_bytes(6, "big") + chance.randbytes(10)
            execution[place["executions"]["created_at"]] = at
            head[place["heads"]["at"]] = at + 500
            if number % RARE == 0:
                execution[place["executions"]["parent"]] = parent
                tags.append(("rare", key, head[place["heads"]["tenant"]], head[phase]))
            if number % 10 == 0:
                tags.append(("tenth", key, head[place["heads"]["tenant"]], head[phase]))
            executions.append(execution)
            heads.append(head)
        conn.execute("BEGIN")
        conn.executemany(insert["executions"], executions)
        conn.executemany(insert["heads"], heads)
        conn.executemany("INSERT INTO tags (tag, execution, tenant, phase) VALUES (?, ?, ?, ?)", tags)
        conn.execute("COMMIT")
    times = "SELECT key / 4096, min(created_at), max(created_at) FROM executions GROUP BY 1"
    conn.execute(f"INSERT OR REPLACE INTO creation_times {times}")
    conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    conn.close()
    return "exec_" + parent.hex()


def ago(days):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - days * 86_400))


def measure(server, of_workflow, parent):
    tenant, _ = server.send("POST", "/tenants", {"name": "second"})
    guest, _ = server.send("POST", "/tokens", {"name": "guest", "role": "viewer", "tenantId": tenant["id"]})
    lists = {
        "no filter": {},
        "status completed": {"status": "completed"},
        "status failed": {"status": "failed"},
        "status running": {"status": "running"},
        "status open": {"status": "open"},
        "failed since a day, none": {"status": "failed", "since": ago(1)},
        "created in the last hour": {"since": ago(1 / 24)},
        "created 29 days ago": {"since": ago(29), "until": ago(28.9)},
        "failed, created 29 days ago": {"status": "failed", "since": ago(29), "until": ago(28.9)},
        "workflow": {"workflowId": of_workflow},
        "workflow and failed": {"workflowId": of_workflow, "status": "failed"},
        "workflow and partial, none": {"workflowId": of_workflow, "status": "partial_success"},
        "workflow, created 29 days ago": {"workflowId": of_workflow, "until": ago(28.9)},
        "tag of a tenth": {"tag": "tenth"},
        "tag of a tenth and partial, none": {"tag": "tenth", "status": "partial_success"},
        "tag of a tenth and failed": {"tag": "tenth", "status": "failed"},
        "failed and without a retry": {"status": "failed", "retried": "false"},
        "rare tag": {"tag": "rare"},
        "tag that none has": {"tag": "no such tag"},
        "parent": {"parentExecutionId": parent},
        "text in the name": {"text": "flow 7"},
        "text that none has": {"text": "no such name"},
        "id": {"text": parent[-12:]},
        "dialect that none has": {"dialect": "playbook"},
    }
    cases = [(name, query, None) for name, query in lists.items()]
    cases += [(f"another tenant: {name}", lists[name], guest["token"]) for name in ("no filter", "status completed", "failed since a day, none")]
    for name, query, token in cases:
        path = f"/executions?{urlencode({**query, 'limit': 50})}"
        first = server.send("GET", path, token=token)
        times = [server.send("GET", path, token=token)[1] for _ in range(REQUESTS)]
        shown = len(first[0]["executions"])
        print(f"{name:36} {shown:3} rows  first {first[1]:7.1f} ms  median {statistics.median(times):7.1f} ms  longest {max(times):7.1f} ms", flush=True)


def main():
    binary, count = sys.argv[1], int(sys.argv[2])
    os.environ["WINDLASS_RATE_LIMIT"] = "0"
    with tempfile.TemporaryDirectory(prefix="windlass-lists-") as folder:
        with Server(binary, folder) as server:
            of_workflow = run_some(server)
        begin = time.perf_counter()
        parent = fill(folder, count)
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        print(f"{count:,} executions in {time.perf_counter() - begin:.0f} s, {size / 1024 / 1024:.0f} MiB; load {os.getloadavg()[0]:.1f}", flush=True)
        with Server(binary, folder) as server:
            measure(server, of_workflow, parent)
        print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
