"""Runs one python task. Reads `request.json` from the folder of this file, and writes `answer.json` to it."""

import ast
import asyncio
import importlib
import inspect
import json
import linecache
import os
import sys
import traceback
import types

HERE = os.path.dirname(os.path.abspath(__file__))
# The worker redacts secrets before it truncates messages and tracebacks to the size of an error.
TRACEBACK_MAX = 1024 * 1024
DEPTH_MAX = 100
# Range of integers that the worker reads exactly.
INT_MIN, INT_MAX = -(2**63), 2**64 - 1
UNSET = object()


class NotJson(Exception):
    """The result cannot be serialised as JSON."""


class BadLibrary(Exception):
    """A module of `libs` cannot be imported."""


def plain(value, place="result", depth=0):
    """Converts a value to types of JSON; raises an error with the place and type of a part that is not JSON."""
    if depth > DEPTH_MAX:
        raise NotJson(f"`{place[:80]}…` is nested deeper than {DEPTH_MAX} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text(value, place)
    if isinstance(value, int):
        if not INT_MIN <= value <= INT_MAX:
            raise NotJson(f"`{place}` is an integer beyond 64 bits; return it as a string with str()")
        return int(value)
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise NotJson(f"`{place}` is {value}, and JSON has no such number")
        return float(value)
    if isinstance(value, dict):
        return {key(k, place): plain(v, f"{place}.{k}", depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, f"{place}[{index}]", depth + 1) for index, item in enumerate(value)]
    raise NotJson(f"`{place}` is of type `{named(type(value))}`, which is not a JSON type; convert it first")


def text(value, place):
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise NotJson(f"`{place}` is a string with lone surrogates, which JSON cannot represent") from None
    return str(value)


def key(value, place):
    if isinstance(value, str):
        return text(value, place)
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)
    raise NotJson(f"`{place}` has a key of type `{named(type(value))}`; keys of JSON objects are strings")


def named(kind):
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def imported(libs):
    """Imports `libs`: the modules of a map under their aliases, those of a list under their own names."""
    wanted = libs.items() if isinstance(libs, dict) else [(lib.split(".")[0], lib) for lib in libs or []]
    found = {}
    for alias, module in wanted:
        try:
            loaded = importlib.import_module(module)
        except ImportError as error:
            raise BadLibrary(f"the library `{module}` cannot be imported: {error}") from None
        found[alias] = loaded if isinstance(libs, dict) else sys.modules[alias]
    return found


class Returns(ast.NodeVisitor):
    """Finds a `return` at the top level of a body, outside of functions and classes."""

    found = False

    def visit_Return(self, node):
        self.found = True

    def leave_out(self, node):
        pass

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = leave_out


class Unannotated(ast.NodeTransformer):
    """Removes annotations of variables, because Python refuses them for names that are declared global."""

    def visit_AnnAssign(self, node):
        if not isinstance(node.target, ast.Name):
            return node
        unannotated = ast.Pass() if node.value is None else ast.Assign(targets=[node.target], value=node.value)
        return ast.fix_missing_locations(ast.copy_location(unannotated, node))

    def leave_out(self, node):
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = leave_out


def compiled(source, name):
    """Returns a function that runs the source in the given globals and returns the value of its `return`."""
    tree = ast.parse(source, name)
    returns = Returns()
    returns.visit(tree)
    if not returns.found:
        code = compile(tree, name, "exec")
        return lambda scope: exec(code, scope) or UNSET
    tree = Unannotated().visit(tree)
    # Variables of the source stay globals of the module: the first compilation finds them, the second declares them global.
    local = function_code(tree.body, name)
    names = [n for n in local.co_varnames + local.co_cellvars if n.isidentifier()]
    code = function_code([ast.Global(names=names)] * bool(names) + tree.body, name)
    code = code.replace(co_name="<module>")
    return lambda scope: types.FunctionType(code, scope)()


def function_code(body, name):
    module = ast.parse("def body(): pass", name)
    module.body[0].body = body
    code = compile(ast.fix_missing_locations(module), name, "exec")
    return next(part for part in code.co_consts if isinstance(part, types.CodeType))


def call_with(function, args, by_place=()):
    """Calls `main` with the arguments of its parameters, by name, or else by position."""
    positional, named_args = [], {}
    for place, (name, parameter) in enumerate(inspect.signature(function).parameters.items()):
        if parameter.kind is parameter.VAR_KEYWORD:
            named_args.update({k: v for k, v in args.items() if k not in named_args})
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            continue
        value = args.get(name, args if name in ("input_data", "args") else UNSET)
        if value is UNSET and parameter.default is parameter.empty and place < len(by_place):
            value = by_place[place]
        if value is UNSET:
            if parameter.default is parameter.empty:
                raise TypeError(f"main() takes `{name}`, and the task's args have no `{name}`")
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(value)
        else:
            named_args[name] = value
    return function(*positional, **named_args)


def run(request):
    args = request["args"]
    module = types.ModuleType("windlass_task")
    scope = module.__dict__
    # Some libraries look up the module of a class.
    sys.modules[module.__name__] = module
    scope.update(imported(request["libs"]))
    scope.update(args)
    scope.setdefault("args", args)
    scope.setdefault("input_data", args)
    by_place = ()
    if request.get("node"):
        ctx = importlib.import_module("windlass").ctx
        scope["ctx"] = ctx
        scope.setdefault("inputs", ctx.inputs)
        args = {"inputs": ctx.inputs, "context": ctx, **args, "ctx": ctx}
        by_place = (ctx.inputs, ctx)
    output = request.get("output") or "result"
    source, name = request["code"], request["name"]
    # Tracebacks show lines of the source, even if there is no such file.
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    given = scope.get(output, UNSET)
    value = compiled(source, name)(scope)
    if value is not UNSET:
        return value
    # An argument with the name of the output is a result only if the code sets it.
    if scope.get(output, UNSET) is not given:
        return scope[output]
    main = scope.get("main")
    if not callable(main):
        return UNSET
    value = call_with(main, args, by_place)
    return asyncio.run(awaited(value)) if inspect.isawaitable(value) else value


async def awaited(value):
    return await value


def line_of(error, trace, name):
    """Returns the innermost line of the task's own code in the traceback."""
    if isinstance(error, SyntaxError) and error.filename == name:
        return error.lineno
    line = None
    while trace:
        if trace.tb_frame.f_code.co_filename == name:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def described(error, name):
    """Describes an exception for the worker, without the frames of this file."""
    trace = error.__traceback__
    while trace and os.path.abspath(trace.tb_frame.f_code.co_filename) == os.path.abspath(__file__):
        trace = trace.tb_next
    lines = "".join(traceback.format_exception(type(error), error.with_traceback(trace), trace))
    trouble = None
    # An error of urllib has the error of the connection as its reason.
    reason = getattr(error, "reason", None) if isinstance(error, OSError) else None
    cause = reason if isinstance(reason, OSError) else error
    socket = sys.modules.get("socket")
    if isinstance(cause, TimeoutError):
        trouble = "timeout"
    elif isinstance(cause, ConnectionRefusedError):
        trouble = "refused"
    elif isinstance(cause, ConnectionError):
        trouble = "connection"
    elif socket and isinstance(cause, socket.gaierror):
        trouble = "dns"
    elif isinstance(error, SyntaxError):
        trouble = "syntax"
    elif isinstance(error, MemoryError):
        trouble = "memory"
    code, retryable = getattr(error, "code", None), getattr(error, "retryable", None)
    try:
        message = str(error)
    except Exception:
        message = "its message cannot be read"
    replace = lambda string: string.encode("utf-8", "replace").decode("utf-8")
    return {
        "exception_type": type(error).__name__,
        "message": replace(message[:TRACEBACK_MAX]),
        "traceback": replace(lines[-TRACEBACK_MAX:]),
        "trouble": trouble,
        "line": line_of(error, trace, name),
        "code": code if isinstance(code, str) and code else None,
        "retryable": retryable if isinstance(retryable, bool) else None,
    }


def answer(request):
    try:
        try:
            value = run(request)
        except SystemExit as ended:
            if ended.code not in (None, 0):
                raise
            module = sys.modules["windlass_task"]
            value = module.__dict__.get("result", UNSET)
        return {"unset": None} if value is UNSET else {"result": plain(value)}
    except NotJson as error:
        return {"not_json": str(error)}
    except BadLibrary as error:
        return {"no_library": str(error)}
    except BaseException as error:
        return {"exception": described(error, request["name"])}


def main():
    # Python searches for modules in the folder of the task, not in the folder of this file.
    if sys.path and os.path.abspath(sys.path[0] or ".") == HERE:
        sys.path[0] = os.getcwd()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    path = os.path.join(HERE, "request.json")
    with open(path, encoding="utf-8") as file:
        request = json.load(file)
    os.remove(path)
    response = json.dumps(answer(request))
    path = os.path.join(HERE, "answer.json")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(response)


main()
