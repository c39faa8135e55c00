"""Runs pairs of programs: one with a word in the place of each value, and one with the values. Reads a line of JSON
for each pair and prints a line: `held`, `skipped`, or the problem."""

import json
import sys
import warnings


def run(code, names):
    """Returns the arguments that the program passed to `P`, and its exception."""
    seen = []

    def pwn(*_):
        seen.append("a value was run")

    scope = dict(names, P=lambda *given: seen.append(given), PWN=pwn, z="z", d={"a": 1})
    try:
        exec(compile(code, "program", "exec"), scope)
    except BaseException as error:
        return seen, type(error).__name__
    return seen, None


def put(found, values):
    """Returns the same value with each word replaced by its value."""
    if isinstance(found, str):
        for word, value in values.items():
            found = found.replace(word, value)
        return found
    if isinstance(found, bytes):
        for word, value in values.items():
            found = found.replace(word.encode(), value.encode())
        return found
    if isinstance(found, (tuple, list)):
        return type(found)(put(one, values) for one in found)
    if isinstance(found, dict):
        return {put(key, values): put(value, values) for key, value in found.items()}
    return found


def judge(case):
    expected, error = run(case["reference"], {word: word for word in case["values"]})
    got, got_error = run(case["program"], {})
    if "a value was run" in got:
        return "a value was run"
    if error in ("SyntaxError", "IndentationError", "ValueError"):
        return "skipped"
    if not case["compare"]:
        return "held"
    wanted = put(expected, case["values"])
    return "held" if (got, got_error) == (wanted, error) else f"got {got} {got_error}, expected {wanted} {error}"


warnings.simplefilter("ignore")
for line in sys.stdin:
    print(json.dumps(judge(json.loads(line))), flush=True)
