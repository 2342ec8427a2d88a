#!/usr/bin/env python3
"""SIGTERM: new requests get 503, the running ones end, then exit 0; those that take too long are given up."""
import signal
import socket
import threading
import time

from running import Server, events_of, main, wait_until

STORY = {"prompt": "Once upon a time", "max_tokens": 300, "temperature": 1, "seed": 9, "logit_bias": {"2": -100},
         "stream": True}


def begun(server, body=STORY):
    sock = server.raw(server.request_bytes("/v1/completions", body))
    got = sock.recv(4096)
    assert got.startswith(b"HTTP/1.1 200 ")
    return sock, got


def rest_of(sock, got):
    while more := sock.recv(65536):
        got += more
    return got


def unchunked(reply):
    text, body = b"", reply.split(b"\r\n\r\n", 1)[1]
    while body:
        size, body = body.split(b"\r\n", 1)
        text, body = text + body[:int(size, 16)], body[int(size, 16) + 2:]
    return text.decode()


def assert_nobody_listens(server):
    try:
        socket.create_connection(("127.0.0.1", server.port), 5).close()
        raise AssertionError("it still takes connections")
    except ConnectionRefusedError:
        pass


def test_running_ones_end():
    for number in (signal.SIGTERM, signal.SIGINT):
        with Server("--parallel", "1") as server:
            sock, got = begun(server)
            queued = server.raw(server.request_bytes("/v1/completions", {**STORY, "max_tokens": 5}))
            wait_until(lambda: server.metric("requests_waiting") >= 1)
            idle, on_its_way = server.raw(), server.raw()
            server.process.send_signal(number)
            wait_until(lambda: "ending" in server.said())
            on_its_way.sendall(server.request_bytes("/v1/completions", STORY))
            assert rest_of(on_its_way, b"").startswith(b"HTTP/1.1 503 "), "a connection is not cut before it has asked"
            assert server.ask("GET", "/health")[::2] == (503, b'{"status":"draining"}')
            for path in ("/v1/completions", "/v1/chat/completions"):
                status, error = server.refused(path, {**STORY, "stream": False})
                assert (status, error["type"], error["code"]) == (503, "server_error", "server_stopping"), error
            assert idle.recv(10) == b"", "an idle connection is closed"
            for one, first in ((sock, got), (queued, b"")):
                assert len(events_of(unchunked(rest_of(one, first)))) > 1, "the answer is whole"
            assert server.process.wait(60) == 0
            assert_nobody_listens(server)


def test_late_clients_are_refused():
    """A balancer that has not noticed yet: none of its requests finds a closed door while an answer is made."""
    with Server() as server:
        sock, got = begun(server, {**STORY, "max_tokens": 900})
        reader = threading.Thread(target=lambda: rest_of(sock, got))
        reader.start()
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "ending" in server.said())
        refused = 0
        while reader.is_alive():
            try:
                refused += server.refused("/v1/completions", STORY)[1]["code"] == "server_stopping"
            except ConnectionRefusedError:
                reader.join(10)  # this machine was slow: the answer has ended a second ago
                assert not reader.is_alive(), "it does not listen any more"
        assert refused > 0
        assert server.process.wait(60) == 0
        assert_nobody_listens(server)
        return f"{refused} refused"


def test_health_alone_does_not_hold_it():
    with Server() as server:
        server.get("/health")
        server.process.send_signal(signal.SIGTERM)
        try:
            for _ in range(1000):
                server.ask("GET", "/health")
                time.sleep(0.05)
            raise AssertionError("it does not end")
        except OSError:
            pass
        assert server.process.wait(60) == 0


def test_the_limit_holds():
    with Server("--drain-seconds", "0") as server:
        sock, got = begun(server, {**STORY, "max_tokens": 1900})
        start = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        text = unchunked(rest_of(sock, got))
        assert '"code":"server_stopping"' in text.split("\n\n")[-2], text[-300:]
        assert server.process.wait(60) == 0
        assert time.monotonic() - start < 20


def test_a_second_signal_ends_it():
    with Server() as server:
        sock, got = begun(server, {**STORY, "max_tokens": 1900})
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "ending" in server.said())
        server.process.send_signal(signal.SIGTERM)
        assert "server_stopping" in rest_of(sock, got).decode()
        assert server.process.wait(60) == 0


def test_nothing_to_end():
    with Server() as server:
        server.post("/v1/completions", {**STORY, "stream": False, "max_tokens": 3})
        assert server.end() == 0
        assert [" ending: " in line for line in server.logged()] == [True], server.said()


main([test_nothing_to_end, test_running_ones_end, test_late_clients_are_refused, test_health_alone_does_not_hold_it,
      test_the_limit_holds, test_a_second_signal_ends_it])
