"""The context of a workflow node: `from windlass import ctx`."""

import json as _json
import os as _os
import signal as _signal
import socket as _socket
import sys as _sys


def _read(name):
    with open(_os.path.join(_os.environ["WINDLASS_CONTEXT"], name), encoding="utf-8") as file:
        return _json.load(file)


def _ask(**request):
    line = _json.dumps(request).encode("utf-8") + b"\n"
    with _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM) as connection:
        connection.connect(_os.environ["WINDLASS_SOCKET"])
        connection.sendall(line)
        answer = _json.loads(connection.makefile("rb").readline() or b'{"error": "the worker is gone"}')
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer["ok"]


class Logger:
    """Writes lines with a level and data to the log of the execution."""

    def log(self, level, message, data=None):
        # Flush first, so that earlier prints come before this line.
        _sys.stdout.flush()
        _ask(op="log", level=level, message=str(message), data=data)

    def debug(self, message, data=None):
        self.log("debug", message, data)

    def info(self, message, data=None):
        self.log("info", message, data)

    def warn(self, message, data=None):
        self.log("warn", message, data)

    warning = warn

    def error(self, message, data=None):
        self.log("error", message, data)


class Metrics:
    """Counters reported in the metadata of the node."""

    def count(self, name, value=1):
        _ask(op="metric", name=name, value=value)

    increment = count


class Signal:
    """Set when the node must stop; the program should check it and exit."""

    def __init__(self):
        self._listeners = []
        self._stopped = False
        _signal.signal(_signal.SIGTERM, self._stop)

    def _stop(self, *_):
        self._stopped = True
        for listener in self._listeners:
            listener()

    @property
    def aborted(self):
        return self._stopped or _os.path.exists(_os.environ["WINDLASS_ABORT"])

    def add_listener(self, listener):
        self._listeners.append(listener)


class Context:
    def __init__(self):
        context = _read("context.json")
        self.execution_id = context["executionId"]
        self.workflow_id = context["workflowId"]
        self.tenant_id = context["tenantId"]
        self.node_id = context["nodeId"]
        self.node_name = context["nodeName"]
        self.node_type = context["nodeType"]
        self.attempt = context["attempt"]
        self.debug = context["debug"]
        self.inputs = context["inputs"]
        self.workflow_inputs = context["workflowInputs"]
        self.config = context["config"]
        self.env = context["env"]
        self.logger = Logger()
        self.metrics = Metrics()
        self._credentials = None
        self._signal = None

    @property
    def credentials(self):
        if self._credentials is None:
            self._credentials = _read("credentials.json")
        return self._credentials

    @property
    def signal(self):
        if self._signal is None:
            self._signal = Signal()
        return self._signal

    def get_state(self, key):
        """Returns the value of the key in this execution, None if it is not set."""
        return _ask(op="get_state", key=key)

    def set_state(self, key, value):
        """Stores the value; it is on disk when this returns."""
        _ask(op="set_state", key=key, value=value)

    def progress(self, step, percentage):
        _ask(op="progress", step=step, percentage=percentage)

    getState = get_state
    setState = set_state


ctx = Context()
