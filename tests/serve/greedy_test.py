#!/usr/bin/env python3
"""Clients that want more than their share, or send what no model can take: others are answered, memory stays bounded,
and each learns what is wrong with its request."""
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

from running import Server, main, program, repository, surroundings

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
STORY = {"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0}
BIG = {"messages": [{"role": "user", "content": "Tell"}], "n": 8, "logprobs": True, "top_logprobs": 20, "ignore_eos": True}


def quickly(server, seconds=30):
    """A small request of somebody else."""
    start = time.monotonic()
    server.post(TEXT, STORY, timeout=seconds)
    return time.monotonic() - start


def asked(server, path, body):
    """A socket with little room that has asked and reads nothing."""
    sock = socket.socket()
    sock.settimeout(120)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    sock.connect(("127.0.0.1", server.port))
    sock.sendall(server.request_bytes(path, body))
    return sock


def test_who_has_gone_is_not_served():
    with Server() as server:
        quickly(server)
        before = server.status_of()["bytes"]
        sent = server.request_bytes(TEXT, {"prompt": " " * 7900000})
        for _ in range(40):
            with server.raw(sent):
                time.sleep(0.01)
        seconds = quickly(server)
        grown = server.status_of()["bytes"] - before
        assert grown < 300 << 20, grown
        server.wait_idle()
        return f"{seconds:.1f} s, {grown >> 20} MB"


def test_slow_readers_have_no_place():
    with Server("-c", "1024") as server:
        socks = [asked(server, CHAT, {**BIG, "max_tokens": 900, "stream": True}) for _ in range(8)]
        while server.metric("requests_running") < 8:
            time.sleep(0.05)
        seconds = [quickly(server) for _ in range(3)]
        assert server.metric("requests_running") >= 8
        for sock in socks:
            sock.close()
        server.wait_idle()
        return f"slowest {max(seconds):.1f} s"


def test_whole_replies_take_no_more_than_they_must():
    with Server("-c", "1024") as server:
        quickly(server)
        before = server.status_of()["bytes"]
        lengths = []
        for _ in range(3):
            lengths.append(len(server.ask("POST", CHAT, {**BIG, "max_tokens": 300})[2]))
        time.sleep(0.5)
        grown = server.status_of()["bytes"] - before
        assert min(lengths) > 3 << 20, lengths
        assert grown < 20 << 20, f"{grown >> 20} MB are kept"
        # Clients that read nothing leave room for others, and for their replies.
        socks = [asked(server, CHAT, {**BIG, "max_tokens": 300}) for _ in range(6)]
        while server.metric("requests_running") < 6:
            time.sleep(0.05)
        quickly(server, 120)
        grown = server.status_of()["bytes"] - before
        assert grown < 120 << 20, f"{grown >> 20} MB for 6 replies of {lengths[0] >> 20} MB"
        for sock in socks:
            sock.close()
        server.wait_idle()
        return f"{grown >> 20} MB for 6 replies of {lengths[0] >> 20} MB"


def test_texts_that_cannot_fit():
    with Server() as server:
        for body in ({"prompt": "x" * 5000000}, {"prompt": " " * 8000000}, {"prompt": "word " * 1500000}):
            start = time.monotonic()
            status, error = server.refused(TEXT, body)
            assert (status, error["code"], error["param"]) == (400, "context_length_exceeded", "prompt"), error
            assert time.monotonic() - start < 5, "it was cut into tokens first"
        for size in (5000000, 3000000, 7900000):
            for messages in ([{"role": "user", "content": "x" * size}],
                             [{"role": "user", "content": "x" * (size // 4)}, {"role": "assistant", "content": "y"}] * 4):
                status, error = server.refused(CHAT, {"messages": messages})
                assert (status, error["code"], error["param"]) == (400, "context_length_exceeded", "messages"), error
                status, error = server.refused("/tokenize", {"messages": messages})
                assert (status, error["param"]) == (400, "messages"), error
        assert server.refused("/tokenize", {"content": "x" * (1 << 20) + "y"})[0] == 400
        assert server.post("/tokenize", {"content": "x" * (1 << 20)})["count"] > 1000
        assert not server.logged(), ("nothing of it is the server's fault", server.logged())


def with_template(folder, template):
    """The bundled model with another chat template."""
    source = os.path.join(repository(), "models", "aerie-tiny")
    made = os.path.join(folder, "model")
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(source, made)
    path = os.path.join(made, "tokenizer_config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    config["chat_template"] = template
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    return made


USER = [{"role": "user", "content": "Hello."}]
# A template, and messages that it cannot handle.
TEMPLATES = [
    ("{{ messages[0].content + messages[1].content }}", USER),
    ("{{ messages[3]['content'] | upper }}{{ messages[3].content.x.y }}", USER),
    ("{% for m in messages %}{{ m.content + 1 }}{% endfor %}", USER),
    ("{{ messages[0].content | int // 0 }}", USER),
    ("{{ messages[0].nothing() }}", USER),
    ("{{ raise_exception('Roles must alternate: ' + messages[0].content) }}", USER),
]


def test_templates_that_fail_for_what_was_sent():
    with tempfile.TemporaryDirectory() as folder:
        for template, messages in TEMPLATES:
            with Server("-m", with_template(folder, template)) as server:
                for path, body in ((CHAT, {"messages": messages}), ("/tokenize", {"messages": messages})):
                    status, error = server.refused(path, body)
                    assert status == 400 and error["param"] == "messages", (template, status, error)
                    assert "chat template" in error["message"], error
                assert not server.logged(), server.logged()
        with Server("-m", with_template(folder, "{{ raise_exception(messages[0].content) }}")) as server:
            for content in ("x" * 1000000, "\u00e9" * 500000, "line\n" * 1000):
                status, error = server.refused(CHAT, {"messages": [{"role": "user", "content": content}]})
                assert status == 400 and len(error["message"].encode()) <= 1000, (status, len(error["message"]))
            assert max(map(len, server.said().split("\n"))) <= 1100


def test_a_template_that_begins_a_thought():
    with tempfile.TemporaryDirectory() as folder:
        for template, thinks in (("{{ messages[0].content }}<think>\n", True), ("{{ messages[0].content }}", False)):
            with Server("-m", with_template(folder, template)) as server:
                assert server.post("/tokenize", {"messages": USER})["thinks"] == thinks, template
                assert not server.post("/tokenize", {"content": "<think>"})["thinks"], "the client's own text"


def test_too_few_threads():
    if os.geteuid() != 0 or not shutil.which("setpriv") or not shutil.which("prlimit"):
        return "skipped: it takes root, setpriv and prlimit"
    ends = {}
    model = os.path.join(repository(), "models", "aerie-tiny")
    for count in range(1, 10):
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", "prlimit",
                   f"--nproc={count}:{count}", "--", program(), "serve", "-m", model, "--port", "0", "-t", "1"]
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(command, stderr=errors, env=surroundings(XDG_CACHE_HOME="/nonexistent"))
            said = ""
            while process.poll() is None and " at http" not in said:
                time.sleep(0.02)
                errors.seek(0)
                said = errors.read().decode()
            if " at http" in said:
                process.kill()
                process.wait()
                break
            errors.seek(0)
            said = errors.read().decode()
        ends[count] = (process.returncode, said)
        last = said.splitlines()[-1]
        assert process.returncode == 1 and "cannot start" in last and said.count("cannot start") == 1, ends
    return f"{len(ends)} limits"


main([test_who_has_gone_is_not_served, test_slow_readers_have_no_place, test_whole_replies_take_no_more_than_they_must,
      test_texts_that_cannot_fit, test_templates_that_fail_for_what_was_sent,
      test_a_template_that_begins_a_thought, test_too_few_threads])
