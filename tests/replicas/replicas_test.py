#!/usr/bin/env python3
"""Two replicas behind HAProxy, as examples/replicas has it. Called as: replicas_test.py PROGRAM REPOSITORY HAPROXY"""
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from balancer import Balancer, FLAGS, example, haproxy
from load import CHAT, CONVERSATIONS, TURNS, Load, ask
from running import Server, main, program

LONG = {"messages": [{"role": "user", "content": "Tell a long story."}], "max_tokens": 600, "temperature": 1, "seed": 5,
        "ignore_eos": True}
SHORT = {"messages": LONG["messages"], "max_tokens": 3, "temperature": 0, "stream": False}

REPLICA_FAILED = {"message": "the replica failed while it answered", "type": "server_error", "param": None,
                  "code": "replica_failed"}
LAST_CHUNK = b"0\r\n\r\n"

load = Load()
expected = {}  # the texts of a single server: {(conversation, turn): text}
hits_alone = 0
both = None  # the Balancer, set below


def hits_of(*servers):
    return sum(int(server.metric("prefix_hits_total")) for server in servers)


def failed(outcomes):
    """[(key, outcome)] of the requests of a load without an answer; all answers must be those of a single server."""
    wrong = {key: (outcome, expected[key]) for key, outcome in outcomes.items()
             if outcome.text is not None and outcome.text != expected[key]}
    assert not wrong, list(wrong.items())[:3]
    return [(key, outcome) for key, outcome in outcomes.items() if outcome.text is None]


def conversations_at(replica, count):
    """Names of `count` conversations that the balancer sends to `replica`."""
    asked = (f"other-{number}" for number in itertools.count())
    return list(itertools.islice((name for name in asked if ask(both, name, SHORT).replica == replica), count))


def in_background(function, *arguments):
    result = []
    thread = threading.Thread(target=lambda: result.append(function(*arguments)))
    thread.start()

    def wait():
        thread.join()
        return result[0]
    return wait


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(0.005)


def begin_stream(client, conversation):
    """Asks for a long answer and reads its first tokens: (socket, bytes so far)."""
    body = {**LONG, "stream": True, **({"prompt_cache_key": conversation} if conversation else {})}
    sock = client.raw(client.request_bytes(CHAT, body))
    got = b""
    while got.count(b"data: ") < 3:
        more = sock.recv(4096)
        assert more, got
        got += more
    return sock, got


def rest_of(sock, got):
    """The bytes of a reply that began with `got`, read until it is whole or the connection is closed."""
    try:
        while not got.endswith(LAST_CHUNK) and (more := sock.recv(65536)):
            got += more
    except ConnectionResetError:
        pass
    return got


def test_the_examples_are_valid():
    subprocess.run([haproxy(), "-c", "-f", example("haproxy.cfg")], check=True, stdout=subprocess.DEVNULL)
    if not shutil.which("systemd-analyze"):
        return "without systemd"
    with tempfile.TemporaryDirectory() as folder:
        unit = os.path.join(folder, "aerie@.service")
        with open(example("aerie@.service"), encoding="ascii") as file, open(unit, "w", encoding="ascii") as copy:
            copy.write(file.read().replace("/usr/bin/aerie", os.path.abspath(program())))
        answers = subprocess.run(["systemd-analyze", "verify", unit.replace("@", "@8081")], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        assert answers.returncode == 0 and not answers.stdout, answers.stdout.decode()
    return None


def test_one_server():
    global hits_alone
    with Server(*FLAGS) as server:
        outcomes = load.run(server)
        expected.update({key: outcome.text for key, outcome in outcomes.items()})
        hits_alone = hits_of(server)
    assert not failed(outcomes), failed(outcomes)[:3]
    assert hits_alone >= CONVERSATIONS * (TURNS - 1), hits_alone
    return f"{len(outcomes)} requests, {hits_alone} prefix hits"


def test_prefixes_are_found():
    outcomes = load.run(both)
    assert not failed(outcomes), failed(outcomes)[:3]
    hits = hits_of(both.a, both.b)
    assert hits >= 0.9 * hits_alone, (hits, hits_alone)
    at = [{outcomes[conversation, turn].replica for turn in range(TURNS)} for conversation in range(CONVERSATIONS)]
    assert all(len(replicas) == 1 for replicas in at), "a conversation stays where it is"
    on_a = at.count({"a"})
    assert 0 < on_a < CONVERSATIONS
    return f"{hits} prefix hits, {100 * hits / hits_alone:.1f} % of {hits_alone}; {on_a} conversations at a"


def test_who_goes_where():
    """The replica is chosen by the header, else by prompt_cache_key, else by the address of the client."""
    by_header = {name: ask(both, name, SHORT).replica for name in map(str, range(12))}
    assert set(by_header.values()) == {"a", "b"}
    for header in (None, ""):
        assert {name: ask(both, header, {**SHORT, "prompt_cache_key": name}).replica for name in by_header} == by_header
        assert len({ask(both, header, SHORT).replica for _ in range(4)}) == 1


def test_what_passes():
    assert both.get("/").lower().startswith("<!doctype html>")
    assert json.loads(both.get("/v1/models"))["data"][0]["id"] == "aerie-tiny"
    assert both.ask("GET", "/metrics")[0] == 404
    page = {"Origin": f"http://localhost:{both.port}", "Host": f"localhost:{both.port}"}
    both.post(CHAT, SHORT, headers=page)
    assert both.refused(CHAT, SHORT, headers={"Host": "evil.example"})[0] == 403
    assert both.refused(CHAT, {**SHORT, "n": 0})[0] == 400


def test_streams_are_not_held_back():
    sock, _ = begin_stream(both, None)
    assert both.a.metric("requests_running") + both.b.metric("requests_running") == 1, "it was held back"
    sock.close()
    wait_until(lambda: both.a.metric("requests_running") + both.b.metric("requests_running") == 0)


def test_who_goes_away_is_noticed():
    [name] = conversations_at("a", 1)
    before = both.a.metric("answers_cancelled_total")
    sock = both.raw(both.request_bytes(CHAT, {**LONG, "stream": False, "prompt_cache_key": name}))
    wait_until(lambda: both.a.metric("requests_running") == 1)
    sock.close()
    wait_until(lambda: both.a.metric("answers_cancelled_total") == before + 1)


def test_a_drained_replica():
    """SIGTERM to one under load: nobody notices, however large the request."""
    [name] = conversations_at("a", 1)
    answers = []

    def drain():
        sock, got = begin_stream(both, name)
        both.a.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "ending" in both.a.said())
        answers.append(ask(both, name, {**SHORT, "metadata": {"padding": "x" * 300_000}}))
        answers.append(rest_of(sock, got))

    outcomes = load.run(both, range(0, 3), 50, drain)
    assert not failed(outcomes), failed(outcomes)[:3]
    large, story = answers
    assert (large.status, large.replica) == (200, "b"), large
    assert story.endswith(b"data: [DONE]\n\n\r\n" + LAST_CHUNK), story[-200:]
    assert both.a.process.wait(60) == 0
    both.wait_until("a", "DOWN")
    return f"{len(outcomes)} requests, none failed; {both.rows()['answers', 'a']['wredis']} were asked of another one"


def test_a_replica_comes_back():
    def restart():
        both.start("a")
        both.wait_until("a", "UP")

    outcomes = load.run(both, range(3, 6), 25, restart)
    assert not failed(outcomes), failed(outcomes)[:3]
    assert conversations_at("a", 1), "it gets its conversations back"


def test_a_killed_replica():
    """SIGKILL to the other one under load: its running requests fail, and their clients learn of it; all later ones
    succeed. Until the process is gone the system still accepts connections for it; requests on these were running too,
    so a client can lose two."""
    names = conversations_at("b", 2)
    answers, times = [], []

    def kill():
        whole = in_background(ask, both, names[0], {**LONG, "stream": False})
        sock, got = begin_stream(both, names[1])
        times.append(time.monotonic())
        both.b.process.kill()
        both.b.process.wait()
        times.append(time.monotonic())
        answers.extend([ask(both, names[0], SHORT), whole(), rest_of(sock, got)])

    outcomes = load.run(both, range(6, 10), 50, kill)
    later, whole, story = answers
    assert (later.status, later.replica) == (200, "a"), later
    assert whole.status == 502 and whole.error == REPLICA_FAILED, whole
    assert b"data: [DONE]" not in story and not story.endswith(LAST_CHUNK), "it looks whole"
    lost = failed(outcomes)
    for key, outcome in lost:
        assert outcome.began < times[1] and outcome.ended > times[0], (key, outcome, times)
        assert outcome.replica in ("b", None), (key, outcome)
        assert outcome.status == 200 or (outcome.status, outcome.error) == (502, REPLICA_FAILED), (key, outcome)
    return f"{len(outcomes)} requests, {len(lost)} of the load failed, all of them running; and the two long ones"


def test_nobody_is_left():
    both.a.process.kill()
    both.a.process.wait()
    status, error = both.refused(CHAT, SHORT)
    assert (status, error["type"], error["code"]) == (503, "server_error", "no_replica"), error
    both.start("b")
    both.wait_until("b", "UP")
    assert ask(both, "anybody", SHORT).replica == "b"


main([test_the_examples_are_valid, test_one_server])
with Balancer() as both:
    main([test_prefixes_are_found, test_who_goes_where, test_what_passes, test_streams_are_not_held_back,
          test_who_goes_away_is_noticed, test_a_drained_replica, test_a_replica_comes_back, test_a_killed_replica,
          test_nobody_is_left])
