#!/usr/bin/env python3
"""A server that learns: from requests with a key alone, for each key by itself, without a change to any answer; and
`aerie forget`."""
import os
import stat
import subprocess
import tempfile
import time

from running import Server, main, program, repository, surroundings, wait_until

TEXT = "/v1/completions"
KEYS = {"sk-alpha-0123456789": 18, "sk-beta-0123456789": 3}


def body(number):
    return {"prompt": f"USER: Tom has {number} apples. ASSISTANT:", "max_tokens": 12, "temperature": 0.7, "seed": number}


def answers(server):
    """The texts of all requests: some without a key, and so many with each."""
    texts = [server.post(TEXT, body(number))["choices"][0]["text"] for number in range(4)]
    for key, count in KEYS.items():
        for number in range(count):
            reply = server.post(TEXT, body(number), headers={"Authorization": f"Bearer {key}"})
            texts.append(reply["choices"][0]["text"])
    return texts


def files(folder):
    return sorted(os.path.join(path, name) for path, _, names in os.walk(folder) for name in names)


def texts_in(state):
    """By owner's folder, how many texts it has."""
    counts = {}
    for path in files(state):
        if path.endswith("texts.jsonl"):
            with open(path, encoding="utf-8") as file:
                counts[os.path.basename(os.path.dirname(path))] = len(file.readlines()) - 1
    return counts


def test_learns_from_keys_alone():
    with tempfile.TemporaryDirectory() as state, Server("--draft", "eagle2") as plain:
        want = answers(plain)
        with Server("--draft", "eagle2", "--learn", XDG_STATE_HOME=state) as server:
            assert answers(server) == want
            wait_until(lambda: sorted(texts_in(state).values()), sorted(KEYS.values()))
            assert all(name.startswith("key-") for name in texts_in(state)), texts_in(state)
            time.sleep(1.5)  # it is learning now
            assert answers(server) == want
            start = time.monotonic()
            assert server.end() == 0
            seconds = time.monotonic() - start
            assert seconds < 30, seconds
            said = server.said()
        assert stat.S_IMODE(os.stat(os.path.join(state, "aerie", "learned")).st_mode) == 0o700
        for path in files(state):
            with open(path, "rb") as file:
                content = file.read()
            for key in KEYS:
                assert key not in path and key.encode() not in content and key not in said, path
        return f"ended after {seconds:.1f} s"


def test_forgets():
    with tempfile.TemporaryDirectory() as state:
        def forget():
            return subprocess.run([program(), "forget"], env=surroundings(XDG_STATE_HOME=state), check=True,
                                  stdout=subprocess.PIPE, text=True).stdout
        assert forget() == "nothing was learnt\n"
        with Server("--draft", "eagle2", "--learn", XDG_STATE_HOME=state) as server:
            server.post(TEXT, body(1), headers={"Authorization": "Bearer x"})
            wait_until(lambda: list(texts_in(state).values()), [1])
        assert forget().endswith("deleted\n")
        assert files(state) == []


def test_needs_a_head():
    model = os.path.join(repository(), "models", "aerie-tiny")
    ended = subprocess.run([program(), "serve", "-m", model, "--port", "0", "--learn", "--draft", "lookup"],
                           env=surroundings(), stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 2 and "an EAGLE head" in ended.stderr, ended


main([test_learns_from_keys_alone, test_forgets, test_needs_a_head])
