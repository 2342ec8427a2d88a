#!/usr/bin/env python3
"""Requests that no honest client sends: each gets its documented status, and the server lives on."""
import json
import socket
import threading
import time

from running import Server, main

KEY = "a-key"
BODY = b'{"prompt":"a","max_tokens":1}'
DEEP = b'{"prompt":"a","metadata":' + b"[" * 70 + b"]" * 70 + b"}"


def head(method="POST", path="/v1/completions", host="HOST", key=KEY, kind="application/json", length=None, more=(),
         version="HTTP/1.1"):
    """A request's head; None leaves a line out."""
    lines = [f"{method} {path} {version}"]
    for name, value in (("Host", host), ("Content-Type", kind), ("Content-Length", length)):
        if value is not None:
            lines.append(f"{name}: {value}")
    if key is not None:
        lines.append(f"Authorization: Bearer {key}")
    return ("\r\n".join([*lines, *more]) + "\r\n\r\n").encode("latin-1")


def post(body=BODY, **more):
    return head(length=len(body), **more) + body


def get(path="/v1/models", **more):
    return head("GET", path, kind=None, **more)


def chunked(body, **more):
    chunk = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
    return head(more=("Transfer-Encoding: chunked",), **more) + chunk


# The bytes that are sent, and the status that comes back. None: the connection is closed without a word.
CASES = [
    # Host
    ("no Host", post(host=None), 400),
    ("two Hosts", post(more=("Host: HOST",)), 400),
    ("an empty Host", post(host=""), 403),
    ("a rebound name", post(host="evil.example"), 403),
    ("a rebound name with the port", post(host="evil.example:PORT"), 403),
    ("the address without its port", post(host="127.0.0.1"), 403),
    ("another port", post(host="127.0.0.1:1"), 403),
    ("a name that ends alike", post(host="evil-localhost:PORT"), 403),
    ("a name that begins alike", post(host="localhost:PORT.evil.example"), 403),
    ("a Host of 0.0.0.0", post(host="0.0.0.0:PORT"), 403),
    ("GET of the page under another Host", get("/", host="evil.example"), 403),
    # Origin
    ("another page", post(more=("Origin: http://evil.example",)), 403),
    ("a page of a file", post(more=("Origin: null",)), 403),
    ("a page of another port", post(more=("Origin: http://localhost:1",)), 403),
    ("https of the same name", post(more=("Origin: https://localhost:PORT",)), 403),
    ("an Origin that begins alike", post(more=("Origin: http://localhost:PORT.evil.example",)), 403),
    ("two Origins", post(more=("Origin: http://HOST", "Origin: http://evil.example")), 400),
    ("a preflight of another page", head("OPTIONS", kind=None, more=("Origin: http://evil.example",)), 403),
    ("health for another page", get("/health", more=("Origin: http://evil.example",)), 403),
    # Content type
    ("no Content-Type", post(kind=None), 415),
    ("a form", post(kind="application/x-www-form-urlencoded"), 415),
    ("plain text, which needs no preflight", post(kind="text/plain"), 415),
    ("multipart", post(kind="multipart/form-data; boundary=x"), 415),
    ("a type that begins alike", post(kind="application/json-seq"), 415),
    ("two types", post(more=("Content-Type: text/plain",)), 400),
    ("a compressed body", post(more=("Content-Encoding: gzip",)), 415),
    # Key
    ("no key", post(key=None), 401),
    ("a wrong key", post(key="wrong"), 401),
    ("the beginning of the key", post(key=KEY[:-1]), 401),
    ("the key and more", post(key=KEY + "x"), 401),
    ("an empty key", post(key=""), 401),
    ("metrics without a key", get("/metrics", key=None), 401),
    ("models without a key", get("/v1/models", key=None), 401),
    ("the key as Basic", post(key=None, more=("Authorization: Basic " + KEY,)), 401),
    # Sizes
    ("100 more headers", post(more=[f"X-{i}: 1" for i in range(100)]), 431),
    ("a header of 17 KB", post(more=("X: " + "x" * 17000,)), 431),
    ("a path of 17 KB", get("/" + "x" * 17000), 431),
    ("a length above 8 MB", head(length=(8 << 20) + 1), 413),
    ("a length above 2^64", head(length=1 << 64), 400),
    ("a negative length", head(length=-1), 400),
    ("a length that is none", head(length="ten"), 400),
    ("a body above 8 MB in chunks", chunked(b"x" * ((8 << 20) + 1)), 413),
    ("a chunk of a huge size", head(more=("Transfer-Encoding: chunked",)) + b"ffffffffffffffff1\r\n", 400),
    ("two ways to say the length", post(more=("Transfer-Encoding: chunked",)), 400),
    ("two lengths", post(more=("Content-Length: 5",)), 400),
    ("a coding that hides another", head(more=("Transfer-Encoding: gzip, chunked",)) + b"0\r\n\r\n", 400),
    # Paths and methods
    ("up and out", get("/../../etc/passwd"), 404),
    ("up and out, encoded", get("/%2e%2e/%2e%2e/etc/passwd"), 404),
    ("a file of the page", get("/page.html"), 404),
    ("a model by its path", get("/v1/models/../../etc/passwd"), 404),
    ("a whole URL", get("http://evil.example/"), 404),
    ("DELETE", head("DELETE", "/v1/models", kind=None), 405),
    ("GET where POST is meant", get("/v1/completions"), 405),
    ("POST where GET is meant", post().replace(b"/v1/completions", b"/v1/models", 1), 405),
    ("CONNECT", head("CONNECT", "evil.example:443", kind=None), 404),
    # No HTTP
    ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(32)) + b"\r\n\r\n", 400),
    ("a bare line", b"HELLO\r\n\r\n", 400),
    ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ("HTTP/1.2", get(version="HTTP/1.2"), 400),
    ("a header without a colon", get(more=("nonsense",)), 400),
    ("a NUL in a header", get(more=("X: a\0b",)), 400),
    ("an Expect that nobody knows", post(more=("Expect: a-miracle",)), 400),
    # Bodies
    ("no body", head(length=0), 400),
    ("no JSON", post(b"prompt=a"), 400),
    ("half a JSON", post(b'{"prompt":'), 400),
    ("70 levels", post(DEEP), 400),
    ("a key twice", post(b'{"prompt":"a","prompt":"b"}'), 400),
    ("a number beyond all", post(b'{"prompt":"a","max_tokens":1e400}'), 400),
    ("a negative count", post(b'{"prompt":"a","n":-1}'), 400),
    ("a million choices", post(b'{"prompt":"a","n":1000000}'), 400),
    ("a token that is none", post(b'{"prompt":[99999999]}'), 400),
    ("a field of another server that changes the text", post(b'{"prompt":"a","mirostat":2}'), 400),
    ("a million values", post(b'{"prompt":[' + b"1," * 400000 + b"1]}"), 400),
    ("Latin-1 in a string", post(b'{"prompt":"\xe9"}'), 400),
    ("17 stop strings", post(b'{"prompt":"a","stop":[' + b'"x",' * 16 + b'"y"]}'), 400),
]


def status_of(server, sent):
    host = b"localhost:%d" % server.port
    with server.raw() as sock:
        try:
            sock.sendall(sent.replace(b"HOST", host).replace(b"PORT", b"%d" % server.port))
        except (BrokenPipeError, ConnectionResetError):
            pass  # the server has answered already
        reply = b""
        while b"\r\n\r\n" not in reply:
            got = sock.recv(65536)
            if not got:
                return None, b""
            reply += got
        start, body = reply.split(b"\r\n\r\n", 1)
        length = [int(line.split(b":")[1]) for line in start.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        while length and len(body) < length[0]:
            got = sock.recv(65536)
            if not got:
                break
            body += got
    return int(reply.split()[1]), body


def test_statuses(server):
    wrong = []
    for name, sent, want in CASES:
        status, body = status_of(server, sent)
        if status != want:
            wrong.append(f"{name}: {status}, not {want}: {body[:200]}")
        elif status:
            error = json.loads(body)["error"]
            if "/" in error["message"].replace("HTTP/1.1", "").replace("application/json", "") or "0x" in error["message"]:
                wrong.append(f"{name}: tells {error['message']}")
    assert not wrong, "\n".join(wrong)
    assert len(CASES) >= 60
    return f"{len(CASES)} requests"


def test_good_ones_pass(server):
    """The same means, used as they are meant."""
    good = [post(), chunked(BODY), post(host="127.0.0.1:PORT"), post(host="[::1]:PORT"),
            post(more=("Origin: http://HOST",)), post(kind="application/json; charset=utf-8"),
            get("/health", key=None), get("/", key=None), get("/metrics"), post(more=["X: 1"] * 90),
            post(b'{"prompt":"' + b"x" * (2 << 20) + b'"}'), post(more=("Expect: 100-continue",))]
    for sent in good[:-2]:
        assert status_of(server, sent)[0] == 200, sent[:200]
    assert status_of(server, good[-2])[0] == 400  # too long for the context, and nothing else is wrong
    assert status_of(server, good[-1])[0] == 100
    own = head("OPTIONS", kind=None, key=None, more=("Origin: http://HOST",))
    assert status_of(server, own)[0] == 204


def test_several_on_a_connection(server):
    """Good ones in a row, then one that ends the connection."""
    sent = (get() * 3 + get("/health") + get(host="evil.example") + head(length=9 << 20))
    with server.raw(sent.replace(b"HOST", b"localhost:%d" % server.port)) as sock:
        reply = b""
        while got := sock.recv(65536):
            reply += got
    statuses = [int(part.split(b" ")[0]) for part in reply.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [200, 200, 200, 200, 403, 413], statuses


def test_slow_ones_are_cut(server):
    """10 s for a head, 10 s for each piece of a body; meanwhile others are answered."""
    ends = {}

    def wait(name, sent):
        start = time.monotonic()
        with server.raw(sent.replace(b"HOST", b"localhost:%d" % server.port)) as sock:
            reply = b""
            while got := sock.recv(4096):
                reply += got
        ends[name] = (time.monotonic() - start, reply[9:12])

    threads = [threading.Thread(target=wait, args=case) for case in
               (("nothing", b""), ("half a head", b"GET / HTTP/1.1\r\nHos"), ("half a body", head(length=100) + b"{"))]
    for thread in threads:
        thread.start()
    server.get("/health")
    for thread in threads:
        thread.join()
    for name, status in (("nothing", b""), ("half a head", b"408"), ("half a body", b"408")):
        seconds, got = ends[name]
        assert 9 < seconds < 25 and got == status, (name, ends)


def test_connections_are_bounded(server):
    """The 129th is turned away; there is room again once others have gone."""
    question = get("/health").replace(b"HOST", b"localhost:%d" % server.port)

    def come():
        """The reply to a new connection, and the connection."""
        sock = server.raw()
        try:
            sock.sendall(question)
            return sock.recv(4096), sock
        except ConnectionError:  # closed before the request was sent
            return b" 503 ", sock

    socks, deadline = [], time.monotonic() + 8
    while len(socks) < 128:
        reply, sock = come()
        if b" 200 " in reply:
            socks.append(sock)
        else:  # a connection of an earlier test is still there
            sock.close()
            time.sleep(0.01)
        assert time.monotonic() < deadline, len(socks)
    with server.raw() as one_more:
        reply = one_more.recv(4096)
        assert b" 503 " in reply and b'"code":"too_many_connections"' in reply, reply
    for sock in socks:
        sock.close()
    server.wait_idle()


def test_keys_are_wanted_elsewhere():
    """An address that others reach needs a key."""
    import subprocess
    from running import program, surroundings
    done = subprocess.run([program(), "serve", "--host", "0.0.0.0", "--port", "0"], env=surroundings(),
                          stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1 and b"--api-key" in done.stderr, done
    with Server("--host", "0.0.0.0", AERIE_API_KEY=KEY) as server:
        assert status_of(server, post())[0] == 200
        assert status_of(server, post(host="evil.example:PORT"))[0] == 403


class Locked(Server):
    """A server that wants a key."""

    def ask(self, method, path, body=None, headers=None, **more):
        return super().ask(method, path, body, {"Authorization": "Bearer " + KEY, **(headers or {})}, **more)


def test_all():
    with Locked(AERIE_API_KEY=KEY) as server:
        before = server.status_of()
        for test in (test_statuses, test_good_ones_pass, test_several_on_a_connection, test_slow_ones_are_cut,
                     test_connections_are_bounded):
            test(server)
        after = server.status_of()
        assert after["files"] == before["files"] and after["threads"] == before["threads"], (before, after)
        assert after["bytes"] < before["bytes"] + (200 << 20), (before, after)
        assert not server.logged(), ("it logs nothing of what was asked", server.logged())
    return f"{len(CASES)} hostile requests"


socket.setdefaulttimeout(60)
main([test_all, test_keys_are_wanted_elsewhere])
