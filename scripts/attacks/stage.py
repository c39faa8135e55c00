"""State of every attack: the server, the attacker's clients, hostile responses."""

import json
from concurrent.futures import ThreadPoolExecutor

import answers


class Stage:
    def __init__(self, server, seconds, random):
        self.server, self.seconds, self.random = server, seconds, random
        self.url = answers.serve()
        self.problems = []
        # Number of cases that a fuzzer has sent.
        self.cases = 0

    def check(self, holds, problem):
        """Records a problem unless the condition is true."""
        if not holds:
            self.problems.append(problem)
        return holds

    def upload(self, definition, role="developer", client=None):
        """Uploads a workflow; returns status and body of the response."""
        client = client or self.server.attacker(role)
        return client.send("POST", "/api/v1/workflows", json.dumps(definition))

    def workflow(self, nodes, name="attack", **more):
        """Returns a workflow with a trigger and a chain of nodes."""
        ids = [node["id"] for node in nodes]
        edges = [{"source": a, "target": b} for a, b in zip(["start", *ids], ids)]
        trigger = {"id": "start", "type": "trigger", **more.pop("trigger", {})}
        return {"name": name, "nodes": [trigger, *nodes], "edges": edges, **more}

    def run(self, definition, inputs=None, role="member", wait=True, timeout=60, **options):
        """Uploads and starts a workflow; returns the response to the start, or to a refused upload."""
        status, made = self.upload(definition)
        if status != 201:
            return status, made
        return self.start(made["id"], inputs, role, wait, timeout, **options)

    def start(self, workflow, inputs=None, role="member", wait=True, timeout=60, **options):
        body = {"inputs": inputs or {}, "options": {"async": not wait, **options}}
        path = f"/api/v1/workflows/{workflow}/execute"
        try:
            return self.server.attacker(role).send("POST", path, body, timeout=timeout)
        except OSError as error:
            return 0, str(error)

    def at_once(self, count, act):
        """Runs a function several times concurrently; returns the results."""
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(act, range(count)))


def http_node(url, **config):
    return {"id": "ask", "type": "http_api", "config": {"url": url, "timeout": 30, **config}}


def sql_node(query, **config):
    return {"id": "sql", "type": "data", "config": {"query": query, "timeout": 20, **config}}
