#!/usr/bin/env python3
"""Clients that do not read: their answers wait, others' do not; after 30 s they are cut."""
import socket
import time

from running import Server, events_of, main, wait_until

STORY = {"prompt": "The quick brown fox", "max_tokens": 16, "temperature": 0}
# 2 KB a token: far more than may wait for a client.
LARGE = {"messages": [{"role": "user", "content": "Hello."}], "max_tokens": 400, "temperature": 1, "seed": 3,
         "logprobs": True, "top_logprobs": 20, "logit_bias": {"2": -100}, "stream": True}


def ask_and_wait(server, body):
    """A socket with little room that has asked and reads nothing."""
    sock = socket.socket()
    sock.settimeout(120)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(("127.0.0.1", server.port))
    sock.sendall(server.request_bytes("/v1/chat/completions", body))
    return sock


def answer_of(sock):
    got = b""
    while not got.endswith(b"0\r\n\r\n"):
        more = sock.recv(1 << 20)
        assert more, got[-200:]
        got += more
    text, body = b"", got.split(b"\r\n\r\n", 1)[1]
    while body:
        size, body = body.split(b"\r\n", 1)
        text, body = text + body[:int(size, 16)], body[int(size, 16) + 2:]
    return events_of(text.decode())


def content_of(events):
    return [entry for event in events for choice in event["choices"] if choice["logprobs"]
            for entry in choice["logprobs"]["content"]]


def test_who_reads_later_gets_all():
    with Server("--parallel", "1", "--keep", "1") as server:
        want = content_of(server.stream("/v1/chat/completions", LARGE))
        assert len(want) > 390
        sock = ask_and_wait(server, LARGE)
        time.sleep(5)
        assert server.metric("requests_running") >= 1, "it waits for its client"
        assert content_of(answer_of(sock)) == want
        sock.close()
        server.wait_idle()


def test_who_never_reads_is_cut():
    with Server("--parallel", "1", "--keep", "1") as server:
        want = server.post("/v1/completions", STORY)["choices"][0]["text"]
        sock = ask_and_wait(server, {**LARGE, "n": 8})
        wait_until(lambda: server.metric("requests_running") >= 1)
        start = time.monotonic()
        before = server.status_of()["bytes"]
        # Once 256 KB wait for the client, the only thread is free for other requests.
        for _ in range(5):
            assert server.post("/v1/completions", STORY)["choices"][0]["text"] == want
        assert server.metric("requests_running") >= 1
        assert time.monotonic() - start < 25, "others waited for the one that does not read"
        while server.metric("requests_running") > 0:
            assert time.monotonic() - start < 120
            time.sleep(0.1)
        seconds = time.monotonic() - start
        assert 29 < seconds < 60, seconds
        assert server.metric("answers_cancelled_total") == 1
        grown = server.status_of()["bytes"] - before
        assert grown < 16 << 20, grown
        sock.close()
        server.wait_idle()
        return f"cut after {seconds:.0f} s"


main([test_who_reads_later_gets_all, test_who_never_reads_is_cut])
