"""A server in a process of its own, and clients that send it requests."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

READY_SECONDS = 60
# Longer than the maximum time of any response; a request that reaches it counts as unanswered.
REQUEST_SECONDS = 60


class Client:
    """Sends JSON requests over one connection, with one token."""

    def __init__(self, address, token=None):
        self.address, self.token, self.connection = address, token, None

    def send(self, method, path, body=None, content_type="application/json", headers=None, timeout=REQUEST_SECONDS):
        """Returns status and body; the body is parsed if it is JSON. Raises OSError if there is no answer."""
        head = dict(headers or {})
        if self.token:
            head["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            head["Content-Type"] = content_type
            body = body if isinstance(body, (str, bytes)) else json.dumps(body)
            body = body.encode() if isinstance(body, str) else body
        for last_try in (False, True):
            fresh = self.connection is None
            if fresh:
                self.connection = http.client.HTTPConnection(*self.address, timeout=timeout)
            try:
                self.connection.request(method, path, body, head)
                response = self.connection.getresponse()
                text = response.read()
                break
            except (OSError, http.client.HTTPException) as error:
                self.close()
                # The server closes idle connections; a request on a closed connection is sent again.
                if fresh or last_try or isinstance(error, TimeoutError):
                    raise OSError(f"{method} {path}: {error!r}") from error
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, text.decode(errors="replace")

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


class Server:
    """`windlass serve` in a data folder of its own, with two tenants: `default` and the attacker's."""

    def __init__(self, binary, environment=None, flags=()):
        self.binary, self.flags = binary, list(flags)
        self.folder = tempfile.mkdtemp(prefix="windlass-attack-")
        self.data = os.path.join(self.folder, "data")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("WINDLASS_")}
        self.environment.update({"WINDLASS_EGRESS_ALLOW": "127.0.0.1"}, **(environment or {}))
        self.peak = 0
        self.start()
        self.tenant = self.owner().send("POST", "/api/v1/tenants", {"name": "Attacker"})[1]["id"]
        self.tokens = {role: self.make_token(role, self.tenant) for role in ROLES}
        self.watching = True
        threading.Thread(target=self.watch, daemon=True).start()

    def start(self):
        self.log = open(os.path.join(self.folder, "log"), "ab")
        offset = self.log.tell()
        command = [self.binary, "serve", "--data", self.data, "--listen", "127.0.0.1:0", "--log", "warn", *self.flags]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        env=self.environment, cwd=self.folder)
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            with open(self.log.name, errors="replace") as log:
                log.seek(offset)
                address = [line.split("http://")[1] for line in log if line.startswith("listening on ")]
            if address:
                host, port = address[0].strip().rsplit(":", 1)
                self.address = (host, int(port))
                if self.is_ready():
                    return
            time.sleep(0.02)
        raise RuntimeError(f"the server is not ready after {READY_SECONDS} s: {self.said()}")

    def is_ready(self):
        try:
            return self.client().send("GET", "/readyz", timeout=READY_SECONDS)[0] == 200
        except OSError:
            return False

    def restart(self):
        """Kills the server without warning and starts it again; returns the seconds until it was ready."""
        self.kill()
        begun = time.monotonic()
        self.start()
        return time.monotonic() - begun

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.watching = False
        if self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def is_alive(self):
        return self.process.poll() is None

    def said(self):
        with open(os.path.join(self.folder, "log"), errors="replace") as log:
            return log.read()[-2000:]

    def panics(self):
        """Returns lines of the log that report a panic of the server or of a process that it started."""
        with open(os.path.join(self.folder, "log"), errors="replace") as log:
            return [line.strip() for line in log if "panicked" in line]

    def client(self, token=None):
        return Client(self.address, token)

    def owner(self):
        with open(os.path.join(self.data, "owner.token")) as token:
            return self.client(token.read().strip())

    def attacker(self, role):
        return self.client(self.tokens[role])

    def make_token(self, role, tenant):
        status, made = self.owner().send("POST", "/api/v1/tokens", {"name": role, "role": role, "tenantId": tenant})
        assert status == 201, made
        return made["token"]

    def watch(self):
        """Records the peak memory of the process and its children, in MiB."""
        while self.watching:
            self.peak = max(self.peak, memory_mib(self.process.pid))
            time.sleep(0.02)

    def take_peak(self):
        peak, self.peak = self.peak, 0
        return peak


ROLES = ("viewer", "member", "developer", "admin", "owner")


def memory_mib(pid):
    """Returns the resident memory of a process and its descendants."""
    parents, resident = {}, {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            parents[int(entry)], resident[int(entry)] = int(fields[1]), int(fields[21])
        except (OSError, IndexError):
            continue
    family = {pid}
    while True:
        grown = family | {child for child, parent in parents.items() if parent in family}
        if grown == family:
            break
        family = grown
    return sum(resident.get(member, 0) for member in family) * os.sysconf("SC_PAGE_SIZE") // 2**20
