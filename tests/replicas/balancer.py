"""HAProxy with the example's configuration, except for its ports and what only root may do; and its two replicas."""
import csv
import io
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "serve"))
from running import Client, Server, repository  # noqa: E402

EXAMPLE_PORTS = {"front": 8080, "a": 8081, "b": 8082}
# Each replica can keep all 50 conversations, so that a single server can serve the whole load too.
FLAGS = ("-c", "1024", "--parallel", "4", "--keep", "60", "--drain-seconds", "300")


def haproxy():
    return sys.argv[3]


def example(name):
    return os.path.join(repository(), "examples", "replicas", name)


def free_ports(count):
    socks = [socket.socket() for _ in range(count)]
    for sock in socks:
        sock.bind(("127.0.0.1", 0))
    ports = [sock.getsockname()[1] for sock in socks]
    for sock in socks:
        sock.close()
    return ports


class Balancer(Client):
    """Runs with its two replicas until the end of the `with`."""

    def __init__(self):
        self.ports = dict(zip(EXAMPLE_PORTS, free_ports(len(EXAMPLE_PORTS))))
        super().__init__(self.ports["front"])
        self.folder = tempfile.TemporaryDirectory()
        config = os.path.join(self.folder.name, "haproxy.cfg")
        with open(config, "w", encoding="ascii") as file:
            file.write(self.config())
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([haproxy(), "-db", "-f", config], stdout=self.errors, stderr=self.errors)

    def config(self):
        with open(example("haproxy.cfg"), encoding="ascii") as file:
            text = file.read()
        for name, port in EXAMPLE_PORTS.items():
            text, count = re.subn(rf"\b(127\.0\.0\.1|localhost):{port}\b", rf"\1:{self.ports[name]}", text)
            assert count >= 2, f"{name} is not in the example"
        text = re.sub(r"^    (user|group|chroot|log /dev/log) ?.*\n", "", text, flags=re.M)
        return text.replace("/run/haproxy/admin.sock mode 660", os.path.join(self.folder.name, "admin.sock"))

    def start(self, name):
        """Starts a replica as docs/scaling.md says: it accepts requests that name the balancer's address."""
        hosts = [f"{host}:{self.port}" for host in ("127.0.0.1", "localhost")]
        flags = [flag for host in hosts for flag in ("--allow-host", host, "--allow-origin", "http://" + host)]
        setattr(self, name, Server(*FLAGS, *flags, port=self.ports[name]))

    def rows(self):
        """HAProxy's statistics: {(proxy, server): row}."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(os.path.join(self.folder.name, "admin.sock"))
            sock.sendall(b"show stat\n")
            text = b""
            while more := sock.recv(65536):
                text += more
        rows = csv.DictReader(io.StringIO(text.decode().lstrip("# ")))
        return {(row["pxname"], row["svname"]): row for row in rows}

    def wait_until(self, name, state):
        end = time.monotonic() + 60
        while True:
            try:
                now = self.rows()["answers", name]["status"]
            except OSError:
                now = "not started"
            if now.split()[0] == state:
                return
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < end, f"{name} is {now}, not {state}"
            time.sleep(0.02)

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode()

    def __enter__(self):
        for name in ("a", "b"):
            self.start(name)
            self.wait_until(name, "UP")
        return self

    def __exit__(self, *_):
        self.a.__exit__()
        self.b.__exit__()
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()
