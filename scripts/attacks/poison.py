"""Harmful documents, then a killed server: it must start again, become ready, and serve others."""

import resources
from bystander import WORKFLOW

DOCUMENTS = [resources.exponential_schema, resources.jsonpath, resources.sql_memory, resources.sql_pointers]
RESTARTS = 3


def restarts(stage):
    """Poison: the server is killed several times while it processes each document."""
    for document in DOCUMENTS:
        hostile = stage.server
        before = list(stage.problems)
        seconds, stage.seconds = stage.seconds, 2
        start_without_waiting(stage, document)
        stage.seconds, stage.problems = seconds, before
        for _ in range(RESTARTS):
            try:
                hostile.restart()
            except RuntimeError as error:
                stage.problems.append(f"{document.__name__}: {error}")
                return
        status, answer = run_bystander(stage)
        stage.check(status == 200, f"{document.__name__}: other tenants' work does not continue: {status} {str(answer)[:200]}")


def start_without_waiting(stage, document):
    """Starts the executions of the attack, and leaves them running."""
    start = stage.start
    stage.start = lambda workflow, inputs=None, role="member", wait=True, timeout=5, **options: start(workflow, inputs, role, False, 5, **options)
    try:
        document(stage)
    except (OSError, AssertionError, AttributeError):
        pass  # The server may have ended already; the next start shows this.
    finally:
        stage.start = start


def run_bystander(stage):
    owner = stage.server.owner()
    try:
        workflow = owner.send("PUT", "/api/v1/workflows?name=bystander", WORKFLOW, "application/yaml")[1]["id"]
        return owner.send("POST", f"/api/v1/workflows/{workflow}/execute", {"inputs": {}, "options": {"async": False}}, timeout=20)
    except OSError as error:
        return 0, str(error)


ATTACKS = [restarts]
