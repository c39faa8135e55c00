"""Measures another tenant: the times of its requests and of executions with one step.

The bystander is a process of its own, so that the work of the attacker's client is not counted as the server's.
"""

import json
import os
import subprocess
import sys
import threading
import time

from server import Client

WORKFLOW = """
name: bystander
nodes:
  - {id: start, type: trigger}
  - {id: keep, type: filter, config: {dataSource: '{{ [1, 2, 3] }}', condition: item > 1}}
edges: [{source: start, target: keep}]
"""
# A pause between requests: the bystander is a user, not a load test.
PAUSE_SECONDS = 0.01


class Bystander:
    """Sends requests and runs executions of the tenant `default` while the block runs."""

    def __init__(self, server):
        self.server, self.requests, self.steps, self.errors = server, [], [], []

    def __enter__(self):
        owner = self.server.owner()
        status, made = owner.send("PUT", "/api/v1/workflows?name=bystander", WORKFLOW, "application/yaml")
        assert status in (200, 201), made
        host, port = self.server.address
        command = [sys.executable, os.path.abspath(__file__), host, str(port), made["id"]]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(owner.token + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "begun\n"
        return self

    def __exit__(self, *_):
        out, _ = self.process.communicate()
        self.requests, self.steps, self.errors = json.loads(out)


class Meter:
    """Runs the process of a bystander, which measures until its standard input ends."""

    def __init__(self, address, workflow, token):
        self.address, self.workflow, self.token = address, workflow, token
        self.goes_on, self.errors = True, []

    def run(self):
        times = [], []
        acts = self.request, self.step
        threads = [threading.Thread(target=self.repeat, args=pair) for pair in zip(acts, times)]
        for thread in threads:
            thread.start()
        print("begun", flush=True)
        sys.stdin.read()
        self.goes_on = False
        for thread in threads:
            thread.join()
        print(json.dumps([*times, self.errors]))

    def repeat(self, act, times):
        client = Client(self.address, self.token)
        while self.goes_on:
            begun = time.monotonic()
            try:
                act(client)
            except (OSError, AssertionError) as error:
                self.errors.append(str(error)[:200])
            times.append((time.monotonic() - begun) * 1000)
            time.sleep(PAUSE_SECONDS)

    def request(self, client):
        status, answer = client.send("GET", "/api/v1/workflows")
        assert status == 200, (status, answer)

    def step(self, client):
        path = f"/api/v1/workflows/{self.workflow}/execute"
        status, answer = client.send("POST", path, {"inputs": {}, "options": {"async": False}})
        assert status == 200 and answer["status"] == "completed", (status, answer)


def percentile(times, share):
    """Returns the percentile that a client with requests at fixed times would measure: a request that hangs for a second
    counts for all requests that would have been sent in that second."""
    felt = []
    for spent in times:
        while spent > 0:
            felt.append(spent)
            spent -= PAUSE_SECONDS * 1000
    if not felt:
        return float("inf")
    return sorted(felt)[min(len(felt) - 1, int(len(felt) * share))]


if __name__ == "__main__":
    host, port, workflow = sys.argv[1:]
    Meter((host, int(port)), workflow, sys.stdin.readline().strip()).run()
