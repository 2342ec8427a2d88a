#!/usr/bin/env python3
"""AERIE_TEST_REQUESTS requests of all kinds, eight clients at once, then 32 clients for AERIE_TEST_MINUTES that come, go,
stall and vanish: nothing grows, nothing is left behind, and each answer is the one that is given alone."""
import itertools
import os
import random
import threading
import time

from running import Server, main

REQUESTS = int(os.environ.get("AERIE_TEST_REQUESTS", "2000"))
MINUTES = float(os.environ.get("AERIE_TEST_MINUTES", "20"))
CLIENTS = 32
WARM = 2000  # requests after which what the server keeps for itself has its size
PROMPTS = ["Once upon a time", "The quick brown fox", "In the beginning there was a long sentence that is worth sharing"]


def one(server, number):
    chance = random.Random(number)
    body = {"prompt": chance.choice(PROMPTS) + " " + "x" * chance.randrange(40), "max_tokens": chance.randrange(1, 9),
            "temperature": chance.choice([0, 1]), "seed": number}
    kind = chance.randrange(20)
    if kind == 0:
        assert server.refused("/v1/completions", {**body, "n": 0})[0] == 400
    elif kind == 1:
        with server.raw(server.request_bytes("/v1/completions", {**body, "stream": True, "max_tokens": 200})) as sock:
            sock.recv(chance.randrange(1, 2000))
    elif kind == 2:
        server.post("/v1/completions", {**body, "n": 3, "logprobs": 5})
    elif kind == 3:
        assert server.ask("GET", "/nowhere")[0] == 404
    elif kind < 9:
        server.post("/v1/completions", body)
    elif kind < 14:
        server.stream("/v1/completions", {**body, "stop": ["e"], "provenance": True})
    else:
        chat = {name: value for name, value in body.items() if name != "prompt"}
        server.post("/v1/chat/completions", {**chat, "messages": [{"role": "user", "content": body["prompt"]}]})


def run(server, numbers, count):
    wrong, taken = [], itertools.islice(numbers, count)
    lock = threading.Lock()

    def work():
        while not wrong:
            with lock:
                number = next(taken, None)
            if number is None:
                return
            try:
                one(server, number)
            except Exception as error:  # any error is reported
                wrong.append((number, error))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong
    server.wait_idle()


def fill(server):
    """Every talk as long as it can be, so that all memory of the cache was touched."""
    def one_of(number):
        server.post("/v1/completions", {"prompt": [300 + number] * 100, "max_tokens": 500, "logit_bias": {"2": -100}})

    threads = [threading.Thread(target=one_of, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_nothing_grows():
    with Server("-c", "512", "--parallel", "4", "--keep", "4") as server:
        numbers = itertools.count()
        fill(server)
        run(server, numbers, WARM)
        before = server.status_of()
        run(server, numbers, REQUESTS)
        after = server.status_of()
        grown = after["bytes"] - before["bytes"]
        assert grown <= 1 << 20, (before, after)
        assert after["files"] == before["files"] and after["threads"] == before["threads"], (before, after)
        assert server.end() == 0
        return f"{REQUESTS} requests, {grown / 1024:.0f} KiB more"


def bodies():
    """Requests whose answers do not change: greedy ones and seeded ones, of short and long prompts, some with a common beginning."""
    system = "You are a helpful assistant who answers in a few words and never makes anything up. " * 4
    made = []
    for number in range(24):
        chance = random.Random(number)
        prompt = (system if number % 3 == 0 else "") + chance.choice(PROMPTS) + " and then" * (1 + number % 7)
        made.append({"prompt": prompt, "max_tokens": 8 + number, "temperature": number % 2, "seed": number, "logprobs": 1})
    return made


def said(reply):
    choice = reply["choices"][0]
    return choice["text"], choice["finish_reason"], choice["logprobs"]["token_logprobs"]


def client(server, number, alone, end, wrong, counts):
    chance = random.Random(number)
    while time.monotonic() < end and not wrong:
        body, want = chance.choice(alone)
        kind = chance.randrange(10)
        try:
            if kind < 6:
                got = said(server.post("/v1/completions", body))
                counts["compared"] += 1
                if got != want:
                    wrong.append((body, got, want))
                continue
            with server.raw(server.request_bytes("/v1/completions", {**body, "stream": True, "max_tokens": 300})) as sock:
                if kind == 6:
                    counts["vanished"] += 1
                elif kind == 7:
                    counts["gone"] += 1
                    sock.recv(chance.randrange(1, 2000))
                else:
                    counts["stalled"] += 1
                    for _ in range(20):
                        time.sleep(0.05)
                        if not sock.recv(64):
                            break
            time.sleep(chance.random() / 10)
        except Exception as error:  # any error is reported
            wrong.append((body, repr(error)))


def shift(server, alone, seconds):
    wrong, counts = [], {"compared": 0, "vanished": 0, "gone": 0, "stalled": 0}
    end = time.monotonic() + seconds
    threads = [threading.Thread(target=client, args=(server, number, alone, end, wrong, counts)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:2]
    server.wait_idle()
    return counts


def test_every_answer_is_the_one_given_alone():
    with Server("-c", "512", "--parallel", "8", "--keep", "4", "--kv-tokens", "2048") as server:
        alone = [(body, said(server.post("/v1/completions", body))) for body in bodies()]
        fill(server)
        shift(server, alone, 6 * MINUTES)  # a tenth of the time
        before = server.status_of()
        counts = shift(server, alone, 54 * MINUTES)
        after = server.status_of()
        grown = after["bytes"] - before["bytes"]
        assert all(counts.values()), counts
        assert grown <= 4 << 20, (before, after)
        assert after["files"] == before["files"] and after["threads"] == before["threads"], (before, after)
        assert server.end() == 0
        return f"{counts}, {grown / 1024:.0f} KiB more"


main([test_nothing_grows, test_every_answer_is_the_one_given_alone])
