#!/usr/bin/env python3
"""HTTP as its standards have it: HEAD, whole URLs, half-closed connections, pages of other origins; and what the
server does when there are too many connections, too many bytes, too little memory."""
import json
import re
import resource
import select
import socket
import threading
import time

from running import Server, events_of, main, wait_until

KEY, PAGE = "a-key", "https://chat.example.com"
SHORT = {"prompt": "Once upon a time", "max_tokens": 4, "temperature": 0}
LONG = {"messages": [{"role": "user", "content": "Tell"}], "max_tokens": 2000, "n": 8, "ignore_eos": True}


def head(server, line, *more, host=None):
    """The head of a request; a `line` without a version gets HTTP/1.1."""
    line = line if " HTTP/" in line else line + " HTTP/1.1"
    fields = [f"Host: {host or f'localhost:{server.port}'}", f"Authorization: Bearer {KEY}", *more]
    return "\r\n".join([line, *(field for field in fields if field), "", ""]).encode("latin-1")


def post(server, body, *more, path="/v1/completions"):
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return head(server, "POST " + path, "Content-Type: application/json", f"Content-Length: {len(text)}", *more) + text


def all_of(sock):
    """All bytes that arrive until the other side closes the connection."""
    got = b""
    while more := sock.recv(1 << 16):
        got += more
    return got


def exchange(server, sent, half_close=False):
    with server.raw(sent) as sock:
        if half_close:
            sock.shutdown(socket.SHUT_WR)
        return all_of(sock)


def statuses(got):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", got)]


def one_reply(sock):
    """(head, body) of a reply with a Content-Length."""
    got = b""
    while b"\r\n\r\n" not in got:
        more = sock.recv(1 << 16)
        assert more, got
        got += more
    first, body = got.split(b"\r\n\r\n", 1)
    length = int(re.search(rb"Content-Length: (\d+)", first)[1])
    while len(body) < length:
        body += sock.recv(1 << 16)
    assert len(body) == length
    return first, body


CLOSE = "Connection: close"


def test_head_is_get_without_a_body(server):
    for line, status in (("/", 200), ("/health", 200), ("/v1/models", 200), ("/v1/models/aerie-tiny", 200), ("/metrics", 200),
                         ("/v1/models/x", 404), ("/x", 404)):
        get, body = exchange(server, head(server, "GET " + line, CLOSE)).split(b"\r\n\r\n", 1)
        reply, nothing = exchange(server, head(server, "HEAD " + line, CLOSE)).split(b"\r\n\r\n", 1)
        assert statuses(reply) == [status] and nothing == b"" and body != b"", (line, reply, nothing)
        if line != "/metrics":  # the metrics have changed in between
            assert reply == get, (line, reply, get)
    for line in ("HEAD /tokenize", "HEAD /v1/completions"):
        reply = exchange(server, head(server, line, CLOSE))
        assert statuses(reply) == [405] and b"\r\nAllow: POST\r\n" in reply and reply.endswith(b"\r\n\r\n"), reply
    assert b"\r\nAllow: GET, HEAD\r\n" in exchange(server, head(server, "POST /health", CLOSE))
    for sent in (head(server, "HEAD / HTTP/1.7"), head(server, "HEAD /", host="evil.example"),
                 head(server, "HEAD /", "Transfer-Encoding: x"), head(server, "HEAD /", "X: " + "x" * 20000)):
        assert exchange(server, sent + head(server, "GET /", CLOSE)).split(b"\r\n\r\n", 1)[1][:1] in (b"", b"H"), sent[:80]
    got = exchange(server, head(server, "HEAD /") * 3 + head(server, "HEAD /x") + head(server, "GET /health", CLOSE))
    assert statuses(got) == [200, 200, 200, 404, 200] and got.count(b"{") == 1, "the next reply follows at once"


def test_letters_of_the_standards(server):
    def status(sent):
        return statuses(exchange(server, sent))

    own = f"http://localhost:{server.port}"
    for sent in (head(server, "GET /health", CLOSE, host=f"LOCALHOST:{server.port}"),
                 head(server, f"GET {own}/health", CLOSE), head(server, f"GET {own.upper()}/health", CLOSE),
                 head(server, f"GET {own}/health?x", CLOSE, host="another.example"), head(server, f"GET {own}", CLOSE),
                 b"\r\n" + head(server, "GET /health", CLOSE), b"\r\n" * 3 + head(server, "GET /health", CLOSE),
                 head(server, f"GET {own}/v1/models/aerie%2Dtiny", CLOSE),
                 head(server, "GET /v1/models/%61erie-tiny?a=%zz", CLOSE)):
        assert status(sent) == [200], (sent, status(sent))
    assert status(head(server, f"GET {own}/v1/models/%zz", CLOSE)) == [400]
    assert status(head(server, "GET http://evil.example/health", CLOSE))[0] in (403, 404)
    # An empty line between two requests comes in pieces.
    with server.raw(head(server, "GET /health")) as sock:
        assert statuses(one_reply(sock)[0]) == [200]
        for piece in (b"\r", b"\n", b"\r\n", head(server, "GET /health")[:9], head(server, "GET /health")[9:]):
            sock.sendall(piece)
            time.sleep(0.02)
        assert statuses(one_reply(sock)[0]) == [200]
    for expect in ("100-continue", "100-Continue", "100-CONTINUE"):
        assert status(post(server, SHORT, CLOSE, "Expect: " + expect)) == [100, 200]
    old = post(server, SHORT, "Expect: 100-continue").replace(b" HTTP/1.1", b" HTTP/1.0", 1)
    assert status(old) == [200], "HTTP/1.0 has no Expect"
    assert status(old.replace(b"100-continue", b"a-miracle")) == [200]
    # Even if the client neither waits for "100 Continue" nor reads, the replies are whole.
    got = exchange(server, post(server, SHORT, "Expect: 100-continue") * 20 + head(server, "GET /health", CLOSE))
    assert statuses(got) == [100, 200] * 20 + [200], statuses(got)


def test_framing_ends_the_connection(server):
    hidden = head(server, "GET /health", CLOSE)
    length = f"Content-Length: {len(hidden)}"
    cases = [["Transfer-Encoding: " + coding] for coding in
             ("xchunked", "chunked, chunked", "chunked, identity", '"chunked"', "identity", "", "\x0bchunked", "gzip")]
    cases += [[length, "Transfer-Encoding: chunked"], ["Transfer-Encoding: chunked", length], [length, "Content-Length: 1"],
              [length, length], [length + ", " + str(len(hidden))], ["Content-Length: +5"], ["Content-Length: 0x5"],
              ["Content-Length:\r\n " + str(len(hidden))], ["Transfer-Encoding:\r\n chunked"], ["Content-Length : 5"],
              ["Transfer-Encoding : chunked"], ["X: a\r\n\tb"], ["Content-Length:"],
              ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], ["Transfer-Encoding: x", "Content-Length: 0"]]
    for fields in cases:
        for line, host in (("POST /v1/completions", None), ("GET /x", None), ("GET /health", None), ("POST /", "evil.example")):
            sent = head(server, line, "Content-Type: application/json", *fields, host=host) + hidden
            got = exchange(server, sent)
            assert statuses(got) == [400] and b"Connection: close" in got, (line, fields, got)
    folded = head(server, "GET /health", CLOSE).replace(b"Host: ", b"Host:\r\n ", 1)
    assert statuses(exchange(server, folded)) == [400]
    old = head(server, "POST /tokenize HTTP/1.0", "Content-Type: application/json", "Transfer-Encoding: chunked")
    assert statuses(exchange(server, old + b"0\r\n\r\n" + hidden)) == [400]
    # The size of a head is limited however its bytes come.
    with server.raw(b"GET / HTTP/1.1\r\n") as sock:
        try:
            for i in range(40):
                sock.sendall(f"X-{i}: {'x' * 1000}\r\n".encode())
                time.sleep(0.005)
        except OSError:
            pass
        assert statuses(sock.recv(4096)) == [431]


def test_clients_that_close_their_sending_side(server):
    want = exchange(server, post(server, SHORT, CLOSE)).split(b"\r\n\r\n", 1)[1]
    text = json.loads(want)["choices"][0]["text"]
    ask, health = post(server, SHORT), head(server, "GET /health")
    for sent, many in ((health, 1), (ask, 1), (ask * 3, 3), (ask + health, 2), (health + ask + b"GET / HT", 2)):
        got = exchange(server, sent, half_close=True)
        assert statuses(got) == [200] * many, got
        assert got.count(f'"text":{json.dumps(text)}'.encode()) == sent.count(b"POST"), got
    got = exchange(server, post(server, {**SHORT, "stream": True, "n": 2}), half_close=True)
    assert got.endswith(b"0\r\n\r\n") and b"data: [DONE]" in got
    assert statuses(exchange(server, head(server, "GET /x"), half_close=True)) == [404]
    assert exchange(server, ask[:9], half_close=True) == b"", "half a head"
    for sent in (ask[:-1], ask[:ask.index(b"{")], health + ask[:-1]):
        got = exchange(server, sent, half_close=True)
        assert statuses(got) == [200] * sent.count(b"GET") + [400] and b"Connection: close" in got, got
        assert json.loads(got[got.index(b'{"error"'):])["error"]["code"] == "incomplete_body", got
    # The request waits in the queue behind one that has the only place.
    with Server("--parallel", "1", "--keep", "0", AERIE_API_KEY=KEY) as narrow:
        with narrow.raw(post(narrow, {**LONG, "stream": True, "n": 1, "max_tokens": 300}, path="/v1/chat/completions")) as first:
            first.recv(1)
            got = exchange(narrow, post(narrow, SHORT), half_close=True)
            assert statuses(got) == [200] and got.count(f'"text":{json.dumps(text)}'.encode()) == 1, got


def running(server):
    figures = exchange(server, head(server, "GET /metrics", CLOSE)).decode()
    return [int(float(re.search(rf"^aerie_requests_{name} (\S+)$", figures, re.M)[1])) for name in ("running", "waiting")]


def wait_for(server, want, seconds=10):
    wait_until(lambda: running(server), want, seconds)


def test_clients_that_have_gone_are_noticed(server):
    """Answers to clients that have closed their connection are given up, whatever these sent after the request and
    whether or not it was read; streamed or whole, closed at once or after their sending side."""
    behind = head(server, "GET /health")
    for ahead in (b"", b"\r\n", behind * 10, behind * 500, b"x" * 200000):
        for stream in (False, True):
            sock = server.raw(post(server, {**LONG, "stream": stream}, path="/v1/chat/completions"))
            wait_for(server, [1, 0])
            sock.settimeout(0.3)
            try:
                sock.sendall(ahead)
            except TimeoutError:  # the server does not read any more
                pass
            time.sleep(0.1)
            sock.close()
            wait_for(server, [0, 0], 5)
    # The client first closes its sending side, then all, once it has read the part of the reply that has come.
    sock = server.raw(post(server, LONG, path="/v1/chat/completions"))
    sock.shutdown(socket.SHUT_WR)
    wait_for(server, [1, 0])
    assert sock.recv(100) == b"H"
    assert running(server) == [1, 0], "it may wait for its answer"
    sock.close()
    wait_for(server, [0, 0], 5)


def test_who_sends_ahead_gets_all(server):
    many = 700
    sent = post(server, {**SHORT, "max_tokens": 300, "ignore_eos": True}) + head(server, "GET /health") * many
    with server.raw() as sock:
        sender = threading.Thread(target=lambda: sock.sendall(sent + head(server, "GET /x", CLOSE)))
        sender.start()
        got = statuses(all_of(sock))
        sender.join()
    assert got == [200] * (many + 1) + [404], (len(got), got[-3:])


def test_pages_read_refusals(server):
    """With a listed Origin each reply says that its page may read it; with any other Origin no reply does."""
    origin, kind = "Origin: " + PAGE, "Content-Type: application/json"
    key = f"Authorization: Bearer {KEY}".encode()
    asked = [(200, head(server, "GET /v1/models", CLOSE, origin)), (200, post(server, SHORT, CLOSE, origin)),
             (401, head(server, "GET /v1/models", CLOSE, origin).replace(key, b"X: y")),
             (404, head(server, "GET /v1/embeddings", CLOSE, origin)), (405, head(server, "GET /tokenize", CLOSE, origin)),
             (413, head(server, "POST /tokenize", origin, kind, f"Content-Length: {9 << 20}")),
             (413, head(server, "POST /tokenize", origin, kind, "Transfer-Encoding: chunked") + b"fffffff\r\n"),
             (415, head(server, "POST /tokenize", CLOSE, origin, "Content-Length: 0")),
             (400, post(server, b"{", CLOSE, origin)), (400, head(server, "GET /", origin, "Transfer-Encoding: x")),
             (400, head(server, "POST /tokenize", origin, kind, "Transfer-Encoding: chunked") + b"x\r\n"),
             (400, head(server, "POST /tokenize", origin, kind, "Expect: x", "Content-Length: 1")),
             (400, post(server, {**SHORT, "best_of": 2}, CLOSE, origin)),
             (431, head(server, "GET /", CLOSE, origin, *["X: y"] * 100))]
    for status, sent in asked:
        got = exchange(server, sent)
        assert statuses(got) == [status], (status, got)
        assert got.count(f"\r\nAccess-Control-Allow-Origin: {PAGE}\r\nVary: Origin\r\n".encode()) == 1, got
        for other in (sent.replace(PAGE.encode(), b"https://evil.example"),
                      sent.replace(b"Host: localhost", b"Host: evil.example"),
                      sent.replace(origin.encode(), origin.encode() + b"\r\n" + origin.encode())):
            assert b"Access-Control" not in exchange(server, other), other
    stream = exchange(server, post(server, {**SHORT, "stream": True}, CLOSE, origin))
    assert f"\r\nAccess-Control-Allow-Origin: {PAGE}\r\n".encode() in stream and b"[DONE]" in stream
    wanted = "authorization,content-type,x-stainless-os,x-stainless-retry-count,openai-organization,idempotency-key"
    for path in ("/v1/chat/completions", "/v1/embeddings", "/metrics"):
        got = exchange(server, head(server, "OPTIONS " + path, CLOSE, origin, "Access-Control-Request-Method: POST",
                                    "Access-Control-Request-Headers: " + wanted).replace(key, b"X: y")).decode()
        assert statuses(got.encode()) == [204] and f"\r\nAccess-Control-Allow-Origin: {PAGE}\r\n" in got, got
        allowed = re.search(r"Access-Control-Allow-Headers: (.*)\r\n", got)[1].lower().split(", ")
        assert set(wanted.split(",")) <= set(allowed), allowed
        assert re.search(r"Access-Control-Allow-Methods: .*POST", got)


def test_pages_read_that_it_is_full_or_ends():
    with Server("--parallel", "1", "--keep", "0", "--allow-origin", PAGE, AERIE_API_KEY=KEY) as server:
        allowed = f"\r\nAccess-Control-Allow-Origin: {PAGE}\r\n".encode()
        ask = post(server, LONG, "Origin: " + PAGE, path="/v1/chat/completions")
        socks = [server.raw(ask)]
        wait_for(server, [1, 0])
        socks += [server.raw(ask) for _ in range(64)]
        wait_for(server, [1, 64])
        got = exchange(server, post(server, SHORT, CLOSE, "Origin: " + PAGE))
        assert statuses(got) == [429] and allowed in got, got
        server.process.terminate()
        wait_until(lambda: "ending" in server.said())
        got = exchange(server, post(server, SHORT, CLOSE, "Origin: " + PAGE))
        assert statuses(got) == [503] and allowed in got and b"server_stopping" in got, got
        for sock in socks:
            sock.close()
        assert server.process.wait(60) == 0


def test_health_has_places_of_its_own(server):
    time.sleep(0.3)  # until the connections of earlier tests are closed
    socks, ask = [], head(server, "GET /health")
    for _ in range(128):
        socks.append(server.raw(ask))
        first, _ = one_reply(socks[-1])
        assert b"\r\nConnection: keep-alive" in first, (len(socks), first)
    silent = []
    for more in range(40):  # silent ones get the spare places, and lose them to clients that ask
        for line in ("GET /health", "HEAD /health"):
            assert statuses(exchange(server, head(server, line))) == [200], more
        silent.append(server.raw())
    got = exchange(server, post(server, SHORT, "Origin: " + PAGE))
    assert statuses(got) == [503] and b"too_many_connections" in got and b"\r\nRetry-After: 1" in got, got
    assert f"\r\nAccess-Control-Allow-Origin: {PAGE}\r\n".encode() in got
    for sock in silent:  # all get a 503, the last ones after some time of silence
        got = all_of(sock)
        assert statuses(got) == [503], got
        sock.close()
    for sock in socks[:2]:
        sock.close()
    time.sleep(0.1)
    assert statuses(exchange(server, post(server, SHORT, CLOSE))) == [200]
    for sock in socks:
        sock.close()
    server.wait_idle()


def hold(server, count, size=7_900_000):
    """`count` connections, each of which has sent all of a body but its last byte, or as much as the server took."""
    socks, sent = [], head(server, "POST /v1/completions", "Content-Type: application/json", f"Content-Length: {size + 1}")
    for _ in range(count):
        sock = server.raw()
        try:
            sock.sendall(sent + b" " * size)
        except OSError:  # the server has refused already
            pass
        socks.append(sock)
    return socks


def test_bodies_are_counted_together(server):
    socks = hold(server, 38)
    replies = []
    for sock in socks:
        sock.settimeout(0.01)
        try:
            replies.append(sock.recv(4096))
        except (TimeoutError, ConnectionError):
            replies.append(b"")
    refused = [got for got in replies if got]
    assert 3 <= len(refused) <= 8, len(refused)
    assert all(statuses(got) == [503] and b'"too_many_bytes"' in got for got in refused), refused[0]
    assert statuses(exchange(server, post(server, SHORT, CLOSE))) == [200], "small ones are taken"
    for sock in socks:
        sock.close()
    server.wait_idle()
    (sock,) = hold(server, 1)
    sock.sendall(b"x")
    assert statuses(one_reply(sock)[0]) == [400], "there is room again"
    sock.close()


def test_no_memory_ends_one_connection():
    """Under a limit of memory that bodies exceed, their connections are closed and counted, and streams go on."""
    with Server() as server:  # A new one: another would fill the memory that earlier bodies have left to its heap.
        with server.raw(post(server, {**LONG, "stream": True, "n": 1, "max_tokens": 900}, path="/v1/chat/completions")) as stream:
            got = stream.recv(1 << 16)
            with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
                size = int(re.search(r"VmSize:\s+(\d+)", file.read())[1]) << 10
            before = resource.prlimit(server.process.pid, resource.RLIMIT_AS)
            resource.prlimit(server.process.pid, resource.RLIMIT_AS, (size + (70 << 20), before[1]))
            socks = hold(server, 24)
            closed, _, _ = select.select(socks, [], [], 60)  # A busy server reads long after the bodies were sent.
            assert closed
            for sock in socks:
                sock.close()
            resource.prlimit(server.process.pid, resource.RLIMIT_AS, before)
            while not got.endswith(b"0\r\n\r\n"):
                more = stream.recv(1 << 16)
                assert more, got[-200:]
                got += more
            assert b"data: [DONE]" in got
        figures = exchange(server, head(server, "GET /metrics", CLOSE)).decode()
        failed = int(re.search(r"^aerie_connections_failed_total (\d+)$", figures, re.M)[1])
        assert failed > 0
        assert statuses(exchange(server, post(server, SHORT, CLOSE))) == [200]
    return f"{failed} closed"


def test_no_client_could_say_it():
    """Origins, hosts, names and keys that no client could send are refused when the server starts, in one line."""
    import os
    import subprocess
    from running import program, repository, surroundings
    model = os.path.join(repository(), "models", "aerie-tiny")
    cases = [(["--allow-origin", origin], {}) for origin in ("null", "*", "http://x/", "https://X", "x", "")]
    cases += [(["--allow-host", host], {}) for host in ("", "*", "http://x", "x/", ".x")]
    cases += [(["--alias", alias], {}) for alias in ("", " ", b"\xff", "a\nb")]
    cases += [(["--api-key", key], {}) for key in ("", " ", "a b", "abc ", "a\n", "a\x01", "\u00fc")]
    cases += [([], {"AERIE_API_KEY": key}) for key in ("", " ", "secret\n", "\tsecret", "sec\x7fret")]
    for flags, variables in cases:
        done = subprocess.run([program(), "serve", "-m", model, "--port", "0", *flags], env=surroundings(**variables),
                              stderr=subprocess.PIPE, timeout=60)
        assert done.returncode == 2 and done.stderr.count(b"\n") == 1, (flags, variables, done)
        assert b"secret" not in done.stderr and b"abc" not in done.stderr, "the key is not shown"
    return f"{len(cases)} starts"


def test_all():
    with Server("--allow-origin", PAGE, AERIE_API_KEY=KEY) as server:
        server.ask = lambda method, path, body=None, headers=None, **more: Server.ask(
            server, method, path, body, {"Authorization": "Bearer " + KEY, **(headers or {})}, **more)
        for test in (test_head_is_get_without_a_body, test_letters_of_the_standards, test_framing_ends_the_connection,
                     test_clients_that_close_their_sending_side, test_clients_that_have_gone_are_noticed,
                     test_who_sends_ahead_gets_all, test_pages_read_refusals, test_health_has_places_of_its_own,
                     test_bodies_are_counted_together):
            start = time.monotonic()
            test(server)
            print(f"  {test.__name__}: {time.monotonic() - start:.1f} s", flush=True)
        server.wait_idle()
        assert server.end() == 0


socket.setdefaulttimeout(60)
main([test_all, test_no_memory_ends_one_connection, test_pages_read_that_it_is_full_or_ends, test_no_client_could_say_it])
