#!/usr/bin/env python3
"""A worker in plain Python: claims calls of a group, makes them, and reports their results.

    WINDLASS_URL=http://127.0.0.1:7070 WINDLASS_TOKEN=wdl_... python3 worker.py GROUP [SLOTS]
"""
import http.client, json, os, sys, threading, time, urllib.error, urllib.request

URL, TOKEN = os.environ.get("WINDLASS_URL", "http://127.0.0.1:7070"), os.environ["WINDLASS_TOKEN"]
GROUP, SLOTS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4
session, lease_ttl, held, lock = None, 30.0, {}, threading.Lock()


def perform(call, stopped):
    """Your code: returns the result, or raises. `stopped` is set when the result is no longer needed."""
    if call["kind"] == "sleep" and stopped.wait(call["input"]["seconds"]):
        raise RuntimeError("stopped")
    return {"echo": call["input"], "attempt": call["attempt"], "key": call["idempotencyKey"]}


def post(path, body):
    """Returns the status and the answer. Retries while the server is down or busy: it keeps the calls of this worker."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{URL}/api/v1/workers/{path}", json.dumps(body).encode(), headers)
    while True:
        try:
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code not in (429, 503):
                    return error.code, error.read().decode()
        except (OSError, http.client.HTTPException, ValueError):
            pass  # no answer, or a part of one
        time.sleep(0.2)


def run(owner, call, stopped):
    print(call["kind"], "of", call["executionId"], file=sys.stderr, flush=True)
    try:
        outcome = {"result": perform(call, stopped)}
    except Exception as error:
        outcome = {"error": {"code": "WORKER_ERROR", "message": str(error), "retryable": True}}
    status, answer = post("report", {"session": owner, "unit": call["unit"], **outcome})
    if status not in (200, 404, 409):  # 404, 409: another worker has the call now. Else: the result cannot be stored
        error = {"code": "RESULT_REFUSED", "message": str(answer)[:1000], "retryable": False}
        post("report", {"session": owner, "unit": call["unit"], "error": error})
    held.pop(call["unit"], None)


def beat():
    while True:
        time.sleep(lease_ttl / 3)
        if session:
            status, answer = post("heartbeat", {"session": session, "held": list(held)})
            gone = list(held) if status == 404 else answer["lost"] + answer["stop"] if status == 200 else []
            for unit in gone:
                held[unit].set() if unit in held else None


threading.Thread(target=beat, daemon=True).start()
while True:
    free = SLOTS - len(held)
    if free == 0:
        time.sleep(0.01)
        continue
    status, answer = post("claim", {"group": GROUP, "slots": free, "waitMs": 10_000, "session": session})
    if status == 404:
        session = None  # the session has expired: the next claim opens another one
    elif status != 200:
        sys.exit(f"{status}: {answer}")
    else:
        session, lease_ttl = answer["session"], answer["leaseTtlMs"] / 1000
        for call in answer["work"]:
            held[call["unit"]] = stopped = threading.Event()
            threading.Thread(target=run, args=(session, call, stopped), daemon=True).start()
