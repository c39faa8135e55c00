"""Every route of the OpenAPI document, for every role of another tenant, and without a token."""

from server import ROLES

OPEN = ("/api/v1/session", "/api/v1/session/preview", "/healthz", "/readyz", "/metrics", "/api/openapi.json")
# Paths that read no data of a tenant, or that a viewer may call although they are not reads.
FOR_ALL = ("/api/v1/nodes/", "/hooks/", "/ws/")
VIEWER_MAY = ("/api/v1/session", "/api/v1/session/link", "/api/v1/validate",)
# Version of the worker protocol; another one is refused before anything else is looked at.
WORKER_HEADERS = {"windlass-protocol": "3"}
PLAYBOOK = "metadata: {name: victim}\nworkflow:\n  - step: start\n    tool: {kind: noop}\n"


def furnish(stage):
    """Creates objects of the tenant `default`; returns an id for each parameter of a path."""
    owner = stage.server.owner()
    workflow = owner.send("PUT", "/api/v1/workflows?name=victim", PLAYBOOK, "application/yaml")[1]["id"]
    path = f"/api/v1/workflows/{workflow}/execute"
    execution = owner.send("POST", path, {"inputs": {}, "options": {"async": False}})[1]["executionId"]
    token = owner.send("POST", "/api/v1/tokens", {"name": "ann", "role": "viewer"})[1]["id"]
    owner.send("PUT", "/api/v1/secrets/api-key", {"value": "a-long-value-of-the-victim"})
    return {"workflows": workflow, "executions": execution, "tokens": token, "tenants": "default", "versions": "1",
            "secrets": "api-key", "actions": "start", "artifacts": "sha256:" + "0" * 64, "values": "0.0",
            "webhook-deliveries": "0" * 32}


def filled(path, ids):
    parts = path.split("/")
    return "/".join(ids.get(parts[at - 1], "1") if part.startswith("{") else part for at, part in enumerate(parts))


def operations(stage):
    """Returns pairs of method and path, with the parameters of the paths filled in."""
    ids = furnish(stage)
    document = stage.server.owner().send("GET", "/api/openapi.json")[1]
    for path, item in document["paths"].items():
        for method in ("get", "put", "post", "patch", "delete"):
            if method in item:
                yield method.upper(), path, filled(path, ids)


def body_of(method, path):
    if method == "GET" or method == "DELETE":
        return None, None
    if path.startswith("/api/v1/workflows") and path.count("/") < 5 and method in ("PUT", "POST"):
        return PLAYBOOK, "application/yaml"
    return {}, "application/json"


def across_tenants(stage):
    """K11: objects of another tenant are not found, with any role; requests without a token are refused."""
    tried = 0
    for method, path, sent in operations(stage):
        if path in OPEN or path.startswith(FOR_ALL):
            continue
        body, content_type = body_of(method, path)
        status, _ = stage.server.client().send(method, sent, body, content_type)
        stage.check(status in (401, 429), f"without a token: {method} {path} is answered {status}")
        # Objects of these names are those of the attacker's own tenant.
        if "{" not in path or path.endswith("/{name}") and (method == "PUT" or "secrets" not in path):
            continue
        for role in ROLES:
            status, answer = stage.server.attacker(role).send(method, sent, body, content_type, WORKER_HEADERS)
            # A secret of that name may be deleted in the attacker's own tenant only: there is none.
            stage.check(status in (400, 403, 404, 415, 429), f"{role} of another tenant: {method} {path} is answered {status} {str(answer)[:120]}")
            tried += 1
    stage.check(tried > 100, f"only {tried} requests were made")


def viewers_change_nothing(stage):
    """Roles: requests of a viewer that are not reads are refused on every route."""
    for method, path, sent in operations(stage):
        if method == "GET" or path.startswith(FOR_ALL) or path in VIEWER_MAY:
            continue
        body, content_type = body_of(method, path)
        status, answer = stage.server.attacker("viewer").send(method, sent, body, content_type)
        stage.check(status in (400, 403, 404, 415, 429), f"viewer: {method} {path} is answered {status} {str(answer)[:120]}")


ATTACKS = [across_tenants, viewers_change_nothing]
