"""A server of the bundled model for tests, and a client to ask it. Python's own library only.

Each test is called as: <name>_test.py PROGRAM REPOSITORY
"""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time


def surroundings(**more):
    """The user's environment, without variables that would choose another model or device."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AERIE_", "HF_"))}
    cache = os.path.join(tempfile.gettempdir(), "aerie_test_cache")
    return {**kept, "AERIE_DEVICE": "cpu", "XDG_CACHE_HOME": cache, **more}


# The beginnings of the lines that a server writes for each request.
REQUESTS = ("aerie: /", "aerie: refused: ")


def program():
    return sys.argv[1]


def repository():
    return sys.argv[2]


class Client:
    """A client of the server at `port` of this machine."""

    def __init__(self, port):
        self.port = port

    def ask(self, method, path, body=None, headers=None, timeout=300):
        """(status, headers, body) of a request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            given = {"Content-Type": "application/json"} if body is not None else {}
            text = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
            connection.request(method, path, text, {**given, **(headers or {})})
            reply = connection.getresponse()
            return reply.status, dict(reply.getheaders()), reply.read()
        finally:
            connection.close()

    def get(self, path, **more):
        status, _, body = self.ask("GET", path, **more)
        assert status == 200, (status, body)
        return body.decode()

    def post(self, path, body, **more):
        status, _, text = self.ask("POST", path, body, **more)
        assert status == 200, (status, text)
        return json.loads(text)

    def refused(self, path, body, **more):
        """(status, error) of a request that must fail."""
        status, _, text = self.ask("POST", path, body, **more)
        error = json.loads(text)["error"]
        assert set(error) == {"message", "type", "param", "code"}, error
        return status, error

    def stream(self, path, body, **more):
        """The events of a streamed reply, without the last one."""
        status, headers, text = self.ask("POST", path, {**body, "stream": True}, **more)
        assert status == 200, (status, text)
        assert headers["Content-Type"].startswith("text/event-stream"), headers
        return events_of(text.decode())

    def metric(self, name):
        found = re.search(rf"^aerie_{re.escape(name)} (\S+)$", self.get("/metrics"), re.M)
        assert found, name
        return float(found[1])

    def raw(self, data=b"", timeout=60):
        """A socket that has sent this."""
        sock = socket.create_connection(("127.0.0.1", self.port), timeout)
        sock.sendall(data)
        return sock

    def request_bytes(self, path, body):
        text = json.dumps(body).encode()
        return (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(text)}\r\n\r\n").encode() + text


class Server(Client):
    """Runs until the end of the `with`; `port` is where."""

    def __init__(self, *flags, port=0, **variables):
        self.errors = tempfile.TemporaryFile()
        flags = flags if "-m" in flags else ("-m", os.path.join(repository(), "models", "aerie-tiny"), *flags)
        self.process = subprocess.Popen([program(), "serve", "--port", str(port), "-t", "1", *flags],
                                        env=surroundings(**variables), stderr=self.errors)
        super().__init__(self.wait_for_port())

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode()

    def logged(self):
        """The lines written since the server is ready, without those of requests."""
        return [line for line in self.lines() if not line.startswith(REQUESTS)]

    def requests_logged(self):
        """The lines of the requests, one each."""
        return [line for line in self.lines() if line.startswith(REQUESTS)]

    def lines(self):
        lines = self.said().splitlines()
        started = next(index for index, line in enumerate(lines) if line.startswith("  drafter "))
        return lines[started + 1:]

    def wait_for_port(self):
        for _ in range(6000):
            found = re.search(r" at http://\S+:(\d+)\n(  .*\n)*  drafter .*\n", self.said())
            if found:
                return int(found[1])
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError("the server did not start: " + self.said())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(120)

    # The following functions ask what the server uses of the machine.
    def status_of(self):
        """Resident bytes, threads and open files."""
        root = f"/proc/{self.process.pid}"
        with open(root + "/status", encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file)
        return {"bytes": int(fields["VmRSS"].split()[0]) << 10, "threads": int(fields["Threads"]),
                "files": len(os.listdir(root + "/fd"))}

    def load(self):
        """Requests that run, that wait, and connections; None while others have all connections."""
        try:
            status, _, figures = self.ask("GET", "/metrics")
        except ConnectionError:  # closed by the server before its request was read
            return None
        if status == 503:
            return None
        assert status == 200, (status, figures)
        return [int(float(re.search(rf"^aerie_{name} (\S+)$", figures.decode(), re.M)[1]))
                for name in ("requests_running", "requests_waiting", "connections")]

    def wait_idle(self, seconds=60):
        """Until nothing runs and the only connection is the one that asks."""
        wait_until(self.load, [0, 0, 1], seconds)
        time.sleep(0.3)  # until the connection of the last question is closed


def wait_until(read, want=True, seconds=60):
    """Waits until `read` returns `want`. Fails if it does not: a test must not wait for ever."""
    end = time.monotonic() + seconds
    while (now := read()) != want:
        assert time.monotonic() < end, f"{now} never became {want}"
        time.sleep(0.01)


def events_of(text):
    events = text.split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""], events[-2:]
    assert all(event.startswith("data: ") for event in events[:-1]), events
    return [json.loads(event[6:]) for event in events[:-2]]


def text_of(events, index=0):
    """The text of a choice, put together from its events."""
    text = ""
    for event in events:
        for choice in event["choices"]:
            if choice["index"] == index:
                text += choice.get("text") or choice.get("delta", {}).get("content") or ""
    return text


def finish_of(events, index=0):
    reasons = [choice["finish_reason"] for event in events for choice in event["choices"]
               if choice["index"] == index and choice["finish_reason"]]
    assert len(reasons) == 1, reasons
    return reasons[0]


def generate(prompt, *flags):
    """The output of `aerie generate --json`."""
    out = subprocess.run([program(), "generate", "-m", os.path.join(repository(), "models", "aerie-tiny"), "-p", prompt,
                          "-t", "1", "-q", "--json", *flags], env=surroundings(), check=True,
                         stdout=subprocess.PIPE).stdout
    return json.loads(out)


def main(tests):
    """Runs every function; the first that fails ends it."""
    for test in tests:
        start = time.monotonic()
        report = test()
        print(f"{test.__name__}: {time.monotonic() - start:.1f} s{', ' + report if report else ''}", flush=True)
