"""What another tenant feels: the times of its requests and of executions with one step."""

import threading
import time

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
    """Sends requests and runs executions of the tenant `default` until the block ends."""

    def __init__(self, server):
        self.server, self.requests, self.steps, self.errors = server, [], [], []

    def __enter__(self):
        status, made = self.server.owner().send("PUT", "/api/v1/workflows?name=bystander", WORKFLOW, "application/yaml")
        assert status in (200, 201), made
        self.workflow, self.goes_on = made["id"], True
        loops = (self.request, self.requests), (self.step, self.steps)
        self.threads = [threading.Thread(target=self.repeat, args=loop, daemon=True) for loop in loops]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.goes_on = False
        for thread in self.threads:
            thread.join()

    def repeat(self, act, times):
        client = self.server.owner()
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
    """The percentile of what a client that asks at fixed times would see: a request that hangs for a second counts for
    all that would have been sent in that second."""
    felt = []
    for spent in times:
        while spent > 0:
            felt.append(spent)
            spent -= PAUSE_SECONDS * 1000
    if not felt:
        return float("inf")
    return sorted(felt)[min(len(felt) - 1, int(len(felt) * share))]
