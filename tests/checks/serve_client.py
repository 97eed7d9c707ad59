# SPDX-License-Identifier: Apache-2.0
"""A lamina serve as a child process, and a plain client of it."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time


class Serve:
    def __init__(self, program, *arguments, env=None, cwd=None):
        self.process = subprocess.Popen(
            [program, "serve", *map(str, arguments)], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd=cwd,
            env={**os.environ, **(env or {})})
        self.errors = []
        threading.Thread(target=self._read_errors, daemon=True).start()
        self.line = self.process.stdout.readline()
        found = re.fullmatch(
            r"(http://(127\.0\.0\.1|localhost)(?::(\d+))?/)"
            r"#token=([A-Za-z0-9_-]{43})\n", self.line)
        if not found:
            self.process.wait(30)
            raise AssertionError(f"no address: {self.line!r} {self.errors}")
        self.address = found[1]
        self.port = int(found[3] or 0)
        self.token = found[4]

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line)

    def ask(self, method, path, body=None, headers=None, token=True,
            timeout=60):
        """(status, headers, bytes); `headers` replace what a browser sends."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                timeout=timeout)
        sent = {}
        if token:
            sent["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            sent["Content-Type"] = "application/json"
            if not isinstance(body, bytes):
                body = json.dumps(body).encode()
        sent.update(headers or {})
        connection.request(method, path, body,
                           {k: v for k, v in sent.items() if v is not None})
        response = connection.getresponse()
        data = response.read()
        connection.close()
        return response.status, dict(response.getheaders()), data

    def get(self, path, **kwargs):
        status, _, data = self.ask("GET", "/api/v1/" + path, **kwargs)
        return status, json.loads(data)

    def post(self, path, body=None, **kwargs):
        status, _, data = self.ask("POST", "/api/v1/" + path, body or {},
                                   **kwargs)
        return status, json.loads(data)

    def traces(self):
        return self.get("traces")[1]["traces"]

    def id_of(self, end):
        return next(t["id"] for t in self.traces() if t["name"].endswith(end))

    def settled(self, id, timeout=120, every=0.05):
        """The trace when it is neither waiting nor opening."""
        until = time.monotonic() + timeout
        while True:
            status, trace = self.get("traces/" + id)
            assert status == 200, trace
            if trace["state"] not in ("waiting", "opening"):
                return trace
            assert time.monotonic() < until, trace
            time.sleep(every)

    def opened(self, id, every=0.05):
        status, trace = self.post(f"traces/{id}/open")
        assert status in (200, 202), trace
        return self.settled(id, every=every)

    def query(self, id, sql, **more):
        return self.post(f"traces/{id}/query", {"sql": sql, **more})

    def raw(self, data, timeout=30, close=False):
        """What comes back for these bytes, until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port),
                                      timeout=timeout) as s:
            try:
                s.sendall(data)
                if close:
                    s.shutdown(socket.SHUT_WR)
                out = b""
                while part := s.recv(65536):
                    out += part
            except OSError:
                return None
            return out

    def workers(self):
        """Processes of the server's traces."""
        pids = subprocess.run(["pgrep", "-P", str(self.process.pid)],
                              capture_output=True, text=True, check=False)
        return [int(p) for p in pids.stdout.split()]

    def memory(self):
        """Bytes in RAM of the server alone."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def stop(self, number=signal.SIGTERM, timeout=20):
        self.process.send_signal(number)
        return self.process.wait(timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
