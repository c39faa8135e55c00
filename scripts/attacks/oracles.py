"""Information that an attacker obtains from responses: secrets by redaction, objects of others by their digests and ids."""

import base64
import os
import secrets

from stage import http_node

HEX = "0123456789abcdef"
JWT_SECRET = secrets.token_hex(24)
MASTER_KEY = base64.b64encode(os.urandom(32)).decode()
ENVIRONMENT = {"WINDLASS_JWT_SECRET": JWT_SECRET, "WINDLASS_JWT_ISSUER": "https://id.example",
               "WINDLASS_JWT_AUDIENCE": "windlass", "WINDLASS_MASTER_KEY": MASTER_KEY}
SEPARATOR = " | "


def echo(stage, name):
    """Creates a workflow whose step receives the secret and echoes an input; returns its id."""
    config = {"method": "POST", "body": "{{ inputs.text }}", "bodyType": "text",
              "queryParams": {"key": "{{ " + name + " }}"}}
    status, made = stage.upload(stage.workflow([http_node(f"{stage.url}/echo", **config)], f"echo-{name}"))
    assert status == 201, made
    return made["id"]


def store(stage, name, value):
    status, made = stage.server.attacker("admin").send("PUT", f"/api/v1/secrets/{name}", {"value": value})
    assert status == 200, made


def echoed(stage, workflow, guesses):
    """Sends all guesses through one execution as a member; returns those that the response contains changed."""
    status, answer = stage.start(workflow, {"text": SEPARATOR.join(guesses)})
    if not stage.check(status == 200 and answer.get("status") == "completed", f"echo failed: {str(answer)[:300]}"):
        return set()
    outputs = answer["outputs"]
    data = outputs.get("data")
    text = data.get("echo") if isinstance(data, dict) else None
    if not stage.check(isinstance(text, str), f"the echo cannot be read: {str(outputs)[:200]}"):
        return set()
    back = text.split(SEPARATOR)
    return {guess for guess, seen in zip(guesses, back) if guess != seen}


def secret_by_prefixes(stage):
    """Redaction: recovers a secret digit by digit, from prefixes before the mark of a truncation."""
    value = "windlass-" + secrets.token_urlsafe(24)
    store(stage, "API_KEY", value)
    workflow = echo(stage, "API_KEY")
    guesses = [a + b + c + d + "…" for a in HEX for b in HEX for c in HEX for d in HEX]
    found = set()
    for part in range(0, len(guesses), 8192):
        found |= echoed(stage, workflow, guesses[part:part + 8192])
    stage.check(not found, f"redaction confirms prefixes: {sorted(found)[:5]} … ({len(found)} in all)")
    # Each known beginning is extended as long as the server confirms it.
    longest, alive = "", [guess[:-1] for guess in found]
    while alive and len(longest) < 200:
        longest = alive[0]
        more = [known + a + b + "…" for known in alive[:64] for a in HEX for b in HEX]
        alive = [guess[:-1] for guess in echoed(stage, workflow, more)]
    if longest:
        stage.problems.append(f"recovered {bytes.fromhex(longest[:len(longest) // 2 * 2])!r}")
    return value


def secret_by_parts(stage):
    """Redaction: parts of a secret in all forms are returned unchanged; the whole value is not."""
    value = "windlass/" + secrets.token_urlsafe(24) + "\n" + secrets.token_urlsafe(24)
    store(stage, "TWO_LINES", value)
    workflow = echo(stage, "TWO_LINES")
    forms = [value, value.encode().hex(), base64.b64encode(value.encode()).decode(), base64.b64encode(b"x" + value.encode()).decode()]
    parts = {form[:cut] for form in forms for cut in range(2, 14)} | {form[-cut:] for form in forms for cut in range(2, 10)}
    parts = sorted(part for part in parts if part.strip() == part and "\n" not in part)
    with_marks = [part + mark for part in parts for mark in ("", "…", "...", "\n")]
    changed = echoed(stage, workflow, with_marks)
    stage.check(not changed, f"redaction confirms parts: {sorted(changed)[:5]}")


def pin(stage):
    """Redaction: ten thousand guesses of a PIN are returned unchanged."""
    store(stage, "PIN", "4711")
    changed = echoed(stage, echo(stage, "PIN"), [f"{guess:04}" for guess in range(10_000)])
    stage.check(not changed, f"redaction confirms the PIN: {sorted(changed)[:5]}")


def engine_keys(stage):
    """Redaction: no value of the engine itself is redacted, so none can be confirmed."""
    store(stage, "PLAIN", secrets.token_urlsafe(24))
    changed = echoed(stage, echo(stage, "PLAIN"), [JWT_SECRET, MASTER_KEY, JWT_SECRET[:8] + "…", MASTER_KEY[:8] + "…"])
    stage.check(not changed, "the redactor of a tenant knows keys of the engine")


def artifacts_of_others(stage):
    """Digests: the digest of another tenant's large value opens nothing, and does not reveal whether it exists."""
    owner = stage.server.owner()
    text = "confidential " + "x" * 100_000
    keep = stage.workflow([{"id": "keep", "type": "filter",
                            "config": {"dataSource": "{{ [inputs.large] }}", "condition": "true"}}], "keeps")
    status, made = stage.upload(keep, client=owner)
    assert status == 201, made
    path = f"/api/v1/workflows/{made['id']}/execute"
    status, answer = owner.send("POST", path, {"inputs": {"large": text}, "options": {"async": False}})
    assert status == 200, answer
    status, events = owner.send("GET", f"/api/v1/executions/{answer['executionId']}/events")
    references = [ref for ref in references_in(events)]
    if not stage.check(bool(references), "no reference to a large value was found"):
        return
    for way in (lambda reference: stage.run(keep, {"large": reference}), lambda reference: by_answer(stage, reference)):
        seen = [way(reference) for reference in (references[0], rename(references[0]))]
        stage.check("confidential" not in str(seen), "another tenant's large value was opened by its digest")
        states = [(status, isinstance(answer, dict) and answer.get("status")) for status, answer in seen]
        stage.check(states[0] == states[1], f"answers differ for an existing and a missing digest: {states}")


def by_answer(stage, reference):
    """Sends the reference in a response that a step reads."""
    ask = http_node(f"{stage.url}/same", method="POST", bodyType="json", body={"found": "{{ inputs.reference }}"})
    use = {"id": "use", "type": "filter", "config": {"dataSource": "{{ [ask.data.found] }}", "condition": "item | length > 0"}}
    return stage.run(stage.workflow([ask, use], "by-answer"), {"reference": reference})


def references_in(value):
    if isinstance(value, dict):
        if "$artifact" in value:
            yield value
        for field in value.values():
            yield from references_in(field)
    elif isinstance(value, list):
        for item in value:
            yield from references_in(item)


def rename(value):
    """Returns the same reference with another digest."""
    if isinstance(value, dict):
        return {key: rename(field) for key, field in value.items()}
    if isinstance(value, str) and len(value) >= 64:
        return value[:-8] + ("00000000" if not value.endswith("00000000") else "11111111")
    return value


ATTACKS = [secret_by_prefixes, secret_by_parts, pin, engine_keys, artifacts_of_others]
