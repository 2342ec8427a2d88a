#!/usr/bin/env python3
"""Clients that go away at every step: their slot is free at once, and nobody else's text changes."""
import threading
import time

from running import Server, main, text_of, wait_until

LONG = {"prompt": "Once upon a time", "max_tokens": 900, "temperature": 1, "seed": 9, "logit_bias": {"2": -100},
        "stream": True}
OTHER = {"prompt": "The quick brown fox", "max_tokens": 60, "temperature": 0.8, "seed": 4}


def cut_after(server, events):
    """Reads `events` events of a long answer and closes the connection. Returns the seconds until nothing runs."""
    sock = server.raw(server.request_bytes("/v1/completions", LONG))
    got = b""
    while got.count(b"data: ") < events:
        more = sock.recv(4096)
        assert more, got
        got += more
    sock.close()
    start = time.monotonic()
    while server.metric("requests_running") > 0:
        assert time.monotonic() < start + 20, "the request still runs"
    return time.monotonic() - start


def test_at_every_step(server):
    """One request after the other, cut after 0, 1, 2, ... events."""
    slowest = max(cut_after(server, events) for events in range(30))
    assert server.metric("answers_cancelled_total") >= 29  # the first request may not have begun
    # A step of the bundled model takes milliseconds; the rest is room for a loaded machine.
    assert slowest < 2, slowest
    server.wait_idle()
    return f"slowest {1000 * slowest:.0f} ms"


def test_others_do_not_notice(server):
    """Texts are the same beside clients that come and go as without them."""
    want = server.post("/v1/completions", OTHER)["choices"][0]["text"]
    stop, wrong = threading.Event(), []

    def come_and_go(first):
        events = first
        while not stop.is_set():
            sock = server.raw(server.request_bytes("/v1/completions", LONG))
            got = b""
            while got.count(b"data: ") < events % 7:
                more = sock.recv(4096)
                if not more:
                    break
                got += more
            sock.close()
            events += 1

    def ask():
        for draft in (True, False, True, True):
            text = text_of(server.stream("/v1/completions", {**OTHER, "draft": draft}))
            if text != want:
                wrong.append(text)

    goers = [threading.Thread(target=come_and_go, args=(i,)) for i in range(2)]
    askers = [threading.Thread(target=ask) for _ in range(2)]
    for thread in goers + askers:
        thread.start()
    for thread in askers:
        thread.join()
    stop.set()
    for thread in goers:
        thread.join()
    assert not wrong, (wrong, want)
    server.wait_idle()


def test_in_the_queue():
    """Clients that go away while they wait leave the queue, and the request that runs goes on."""
    with Server("--parallel", "1", "--keep", "0") as server:
        # Long enough for 64 connections on a loaded machine. Its client reads all the time, so it keeps its place.
        running = server.raw(server.request_bytes("/v1/completions", {**LONG, "max_tokens": 3000, "n": 4}))
        text = bytearray()

        def read():
            while b"[DONE]" not in text[-100:]:
                more = running.recv(65536)
                assert more
                text.extend(more)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        wait_until(lambda: server.metric("requests_running") == 1)
        waiting = [server.raw(server.request_bytes("/v1/completions", OTHER)) for _ in range(64)]
        wait_until(lambda: server.metric("requests_waiting") == 64)
        assert server.refused("/v1/completions", OTHER)[0] == 429
        for sock in waiting:
            sock.close()
        wait_until(lambda: server.metric("requests_waiting") == 0)
        assert b"[DONE]" not in text, "it ran while the others waited"
        reader.join()
        assert b"[DONE]" in text[-100:]
        running.close()
        server.wait_idle()


def test_all():
    with Server("-c", "1024") as server:
        report = test_at_every_step(server)
        test_others_do_not_notice(server)
    test_in_the_queue()
    return report


main([test_all])
