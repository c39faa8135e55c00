"""Runs the attacks and prints one line for each."""

import argparse
import json
import os
import random
import sys
import time

import bodies
import frames
import oracles
import poison
import resources
import routes
import strangers
from bystander import Bystander, percentile
from server import Server
from stage import Stage

ATTACKS = [*routes.ATTACKS, *oracles.ATTACKS, *strangers.ATTACKS, *resources.ATTACKS, *poison.ATTACKS,
           *bodies.ATTACKS, *frames.ATTACKS]
# Attacks that restart the server, during which no bystander is measured.
ALONE = poison.ATTACKS
# Attacks that wait for limits of many seconds; `--quick` skips them.
SLOW = [strangers.silent_sockets, resources.sql_memory, resources.everything]


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/attack", description="Attacks a windlass server over HTTP.")
    parser.add_argument("names", nargs="*", help="attacks to run; all by default")
    parser.add_argument("--quick", action="store_true", help="leave out attacks that wait for limits of many seconds")
    parser.add_argument("--list", action="store_true", help="list the attacks")
    parser.add_argument("--seconds", type=float, default=3, help="duration of one attack (default 3)")
    parser.add_argument("--memory-mib", type=int, default=1024, help="bound on the server's peak memory (default 1024)")
    parser.add_argument("--p99-ms", type=float, default=5000,
                        help="bound on the other tenant's requests at the 99th percentile (default 5000; use 250 "
                             "with a release build on an idle machine)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print one object per attack")
    return parser.parse_args()


def run(attack, options):
    """Runs one attack on a new server; returns a report."""
    server = Server(os.environ["WINDLASS_BIN"], oracles.ENVIRONMENT, getattr(attack, "flags", ()))
    stage = Stage(server, options.seconds, random.Random(options.seed))
    meter, begun = Bystander(server), time.monotonic()
    try:
        if attack in ALONE:
            attack(stage)
        else:
            with meter:
                attack(stage)
    except (OSError, RuntimeError, AssertionError) as error:
        stage.problems.append(f"the attack ended early: {error}")
    seconds, peak = time.monotonic() - begun, server.take_peak()
    stage.check(server.is_alive(), f"the server has ended: {server.said()}")
    stage.check(not server.panics(), f"the server panicked: {server.panics()[:3]}")
    stage.check(peak <= options.memory_mib, f"peak memory {peak} MiB is over {options.memory_mib} MiB")
    p99 = percentile(meter.requests, 0.99)
    if attack not in ALONE:
        stage.check(p99 <= options.p99_ms, f"requests of another tenant took {p99:.0f} ms at the 99th percentile")
        stage.check(meter.steps and not meter.errors, f"another tenant's work failed: {meter.errors[:3] or 'no step ended'}")
    ready = server.is_alive() and server.is_ready()
    stage.check(ready, "the server is not ready after the attack")
    server.stop()
    return {"attack": attack.__name__, "seconds": round(seconds, 1), "peak_mib": peak, "cases": stage.cases,
            "requests": len(meter.requests), "request_p50_ms": shown(percentile(meter.requests, 0.5)), "request_p99_ms": shown(p99),
            "request_max_ms": shown(max(meter.requests, default=0)),
            "steps": len(meter.steps), "step_p99_ms": shown(percentile(meter.steps, 0.99)), "problems": stage.problems}


def shown(value):
    return None if value == float("inf") else round(value, 1)


def main():
    options = arguments()
    chosen = [attack for attack in ATTACKS if not options.names or attack.__name__ in options.names]
    unknown = set(options.names) - {attack.__name__ for attack in chosen}
    if unknown:
        sys.exit(f"error: no attack is called {', '.join(sorted(unknown))}; see --list")
    if options.quick:
        chosen = [attack for attack in chosen if attack not in SLOW]
    if options.list:
        for attack in chosen:
            print(f"{attack.__name__:26} {attack.__doc__}")
        return
    failed = 0
    for attack in chosen:
        report = run(attack, options)
        failed += bool(report["problems"])
        if options.json:
            print(json.dumps(report), flush=True)
            continue
        verdict = "FAILED" if report["problems"] else "held"
        print(f"{verdict:7}{report['attack']:26} {report['seconds']:6} s  peak {report['peak_mib']:5} MiB  "
              f"requests p50 {report['request_p50_ms']} p99 {report['request_p99_ms']} ms  steps p99 {report['step_p99_ms']} ms"
              + (f"  {report['cases']} cases" if report["cases"] else ""), flush=True)
        for problem in report["problems"]:
            print(f"       {problem}", flush=True)
    print(f"{len(chosen) - failed} attacks held, {failed} succeeded")
    sys.exit(bool(failed))


main()
