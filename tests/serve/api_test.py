#!/usr/bin/env python3
"""The replies of the endpoints have OpenAI's shapes."""
import json
import math
import os
import shlex
import time

from running import Server, finish_of, generate, main, repository, text_of

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
HELLO = {"messages": [{"role": "user", "content": "Hello there."}], "max_tokens": 24, "temperature": 0}
STORY = {"prompt": "Once upon a time", "max_tokens": 24, "temperature": 0}


def test_small_ones(server):
    health = json.loads(server.get("/health"))
    assert health == {"status": "ok", "started": json.loads(server.get("/v1/models"))["data"][0]["created"]}
    models = json.loads(server.get("/v1/models"))
    assert models["object"] == "list" and [model["id"] for model in models["data"]] == ["aerie-tiny"]
    about = json.loads(server.get("/v1/models/aerie-tiny"))
    assert about["id"] == "aerie-tiny" and about["aerie"]["weights"] == "f16" and about["aerie"]["chat"]
    assert about["aerie"]["drafter"].endswith(", aerie-tiny-eagle") and about["aerie"]["device"], about
    assert about["aerie"]["sampling"] == {"temperature": 0, "top_k": 0, "top_p": 0.95, "min_p": 0, "repetition_penalty": 1,
                                          "frequency_penalty": 0, "presence_penalty": 0}, about
    assert server.ask("GET", "/v1/models/other")[0] == 404
    status, headers, page = server.ask("GET", "/")
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    assert b"<form" in page and "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"], "hashes say what may run"
    page = page.replace(b"http://www.w3.org/2000/svg", b"")  # the name of a namespace
    assert b"http://" not in page and b"https://" not in page, "the page asks other hosts"


def test_tokenize(server):
    ids = server.post("/tokenize", {"content": "Once upon a time", "add_special": True})
    assert ids["tokens"] == generate("Once upon a time", "-n", "1")["prompt_ids"]
    assert ids["count"] == len(ids["tokens"]) and ids["max_model_len"] > 0
    bare = server.post("/tokenize", {"content": "Once upon a time"})
    assert len(bare["tokens"]) == ids["count"] - 1, "the first is BOS"
    chat = server.post("/tokenize", {"messages": HELLO["messages"]})
    assert chat["tokens"] == generate("Hello there.", "--chat", "-n", "1")["prompt_ids"]
    # Special tokens in a client's text are plain text.
    assert 2 not in server.post("/tokenize", {"content": "</s>"})["tokens"]


def test_chat_shapes(server):
    whole = server.post(CHAT, {**HELLO, "model": "aerie-tiny"})
    assert whole["object"] == "chat.completion" and whole["model"] == "aerie-tiny"
    choice = whole["choices"][0]
    assert choice["message"]["role"] == "assistant" and choice["finish_reason"] in ("stop", "length")
    assert choice["logprobs"] is None
    usage = whole["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    events = server.stream(CHAT, {**HELLO, "stream_options": {"include_usage": True}})
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    assert len({event["id"] for event in events}) == 1
    assert events[0]["choices"][0]["delta"]["role"] == "assistant"
    assert events[-1]["choices"] == [] and events[-1]["usage"]["completion_tokens"] == usage["completion_tokens"]
    assert all(event["usage"] is None for event in events[:-1])
    assert text_of(events) == choice["message"]["content"]
    assert finish_of(events) == choice["finish_reason"]
    assert "usage" not in server.stream(CHAT, HELLO)[0]


def test_stop(server):
    text = server.post(TEXT, STORY)["choices"][0]["text"]
    stop = text[len(text) // 2:len(text) // 2 + 4]
    for asked in (stop, ["never said", stop]):
        choice = server.post(TEXT, {**STORY, "stop": asked})["choices"][0]
        assert choice["text"] == text[:text.index(stop)] and choice["finish_reason"] == "stop"
        events = server.stream(TEXT, {**STORY, "stop": asked})
        assert text_of(events) == choice["text"] and finish_of(events) == "stop"


def test_logprobs(server):
    want = generate(STORY["prompt"], "-n", "24", "--logprobs", "--temp", "0.9", "-s", "3")
    asked = {**STORY, "temperature": 0.9, "seed": 3}
    choice = server.post(TEXT, {**asked, "logprobs": 3})["choices"][0]
    scores = choice["logprobs"]
    assert len(scores["tokens"]) == len(scores["token_logprobs"]) == len(scores["text_offset"])
    for got, logprob in zip(scores["token_logprobs"], want["logprobs"]):
        assert math.isclose(got, logprob, abs_tol=1e-4), "they are of the raw distribution"
    assert all(len(top) <= 3 for top in scores["top_logprobs"])
    for token, offset in zip(scores["tokens"][1:], scores["text_offset"][1:]):
        assert "\ufffd" in token or choice["text"].encode()[offset:].startswith(token.encode())
    chat = server.post(CHAT, {**HELLO, "logprobs": True, "top_logprobs": 2})["choices"][0]
    content = chat["logprobs"]["content"]
    said = b"".join(bytes(entry["bytes"]) for entry in content).decode().strip()
    assert said == chat["message"]["content"].strip(), (said, chat["message"]["content"])
    for entry in content:
        assert len(entry["top_logprobs"]) == 2
        assert entry["logprob"] == max(top["logprob"] for top in entry["top_logprobs"]), "greedy takes the best"
    streamed = server.stream(CHAT, {**HELLO, "logprobs": True, "top_logprobs": 2})
    parts = [entry for event in streamed for choice in event["choices"] if choice["logprobs"]
             for entry in choice["logprobs"]["content"]]
    assert parts == content


def test_bias_and_penalties(server):
    plain = server.post(TEXT, {**STORY, "logprobs": 0})["choices"][0]
    first = server.post("/tokenize", {"content": plain["text"].split()[0]})["tokens"][0]
    ids = generate(STORY["prompt"], "-n", "24")["ids"]
    forbidden = server.post(TEXT, {**STORY, "logit_bias": {str(ids[0]): -100}})["choices"][0]
    assert forbidden["text"] != plain["text"], first
    forced = server.post(TEXT, {**STORY, "max_tokens": 5, "logit_bias": {str(ids[3]): 100}, "logprobs": 1})
    assert len(set(forced["choices"][0]["logprobs"]["tokens"])) == 1
    penalised = generate(STORY["prompt"], "-n", "24", "--frequency-penalty", "1.5", "--presence-penalty", "0.5")
    choice = server.post(TEXT, {**STORY, "frequency_penalty": 1.5, "presence_penalty": 0.5})["choices"][0]
    assert choice["text"] == penalised["text"]
    penalised = generate(STORY["prompt"], "-n", "24", "--repeat-penalty", "1.5")["text"]
    for name in ("repetition_penalty", "repeat_penalty"):
        assert server.post(TEXT, {**STORY, name: 1.5})["choices"][0]["text"] == penalised, name
    assert penalised != plain["text"]


def test_provenance(server):
    whole = server.post(TEXT, {**STORY, "provenance": True})["choices"][0]
    pieces = whole["aerie"]["pieces"]
    assert "".join(piece["text"] for piece in pieces) == whole["text"]
    assert pieces[0]["from"] == "prompt" and {piece["from"] for piece in pieces} == {"prompt", "draft", "target"}
    assert all((piece["depth"] > 0) == (piece["from"] == "draft") for piece in pieces)
    events = server.stream(TEXT, {**STORY, "provenance": True})
    streamed = [piece for event in events for choice in event["choices"] for piece in choice["aerie"].get("pieces", [])]
    # The place where a draft ends depends on the costs of trees here and now; the text does not.
    assert "".join(piece["text"] for piece in streamed) == whole["text"]
    assert {piece["from"] for piece in streamed} == {"prompt", "draft", "target"}
    assert events[-1]["choices"][0]["aerie"]["tau"] > 1


def test_answers_that_do_not_end(server):
    asked = {"messages": [{"role": "user", "content": "How many apples are 3 and 4?"}], "temperature": 0,
             "max_tokens": 300}
    short = server.post(CHAT, asked)
    assert short["choices"][0]["finish_reason"] == "stop" and short["usage"]["completion_tokens"] < 300
    long = server.post(CHAT, {**asked, "ignore_eos": True})
    assert long["choices"][0]["finish_reason"] == "length" and long["usage"]["completion_tokens"] == 300
    assert long["choices"][0]["message"]["content"].startswith(short["choices"][0]["message"]["content"])


def test_seeds_are_reported(server):
    first = server.post(TEXT, {**STORY, "temperature": 1})["choices"][0]
    again = server.post(TEXT, {**STORY, "temperature": 1, "seed": first["aerie"]["seed"]})["choices"][0]
    assert first["text"] == again["text"]


def test_refusals(server):
    many = {"prompt": [5] * 5000}
    assert server.refused(TEXT, many)[1]["code"] == "context_length_exceeded"
    for body, param in (({"prompt": [1 << 30]}, "prompt"), ({**STORY, "logit_bias": {"99999999": 1}}, "logit_bias"),
                        ({**STORY, "temperature": 3}, "temperature"), ({**STORY, "n": 9}, "n"),
                        ({"prompt": ""}, None)):
        if param is None:
            assert server.ask("POST", TEXT, body)[0] == 200, "an empty prompt is BOS"
            continue
        status, error = server.refused(TEXT, body)
        assert (status, error["param"], error["type"]) == (400, param, "invalid_request_error"), error
    status, error = server.refused(CHAT, {**HELLO, "tools": [{"type": "function"}]})
    assert (status, error["code"], error["param"]) == (400, "unsupported_parameter", "tools")
    status, _, text = server.ask("GET", "/v1/models/gpt-4")
    error = json.loads(text)["error"]
    assert (status, error["code"]) == (404, "model_not_found") and "'aerie-tiny'" in error["message"], error
    status, _, text = server.ask("POST", CHAT, json.dumps(HELLO), headers={"Content-Type": "text/plain"})
    assert status == 415 and "-H 'Content-Type: application/json'" in text.decode(), text


def test_other_servers_clients(server):
    """Requests of front ends that were configured for other servers."""
    said = server.post(CHAT, HELLO)["choices"][0]["message"]["content"]
    hints = {"model": "gpt-4o", "keep_alive": "5m", "num_ctx": 4096, "options": {"x": 1}, "verbosity": "low",
             "tools": [], "tool_choice": "auto", "id_slot": 0}
    assert server.post(CHAT, {**HELLO, **hints})["choices"][0]["message"]["content"] == said
    assert [line for line in server.logged() if "'num_ctx', which has no effect" in line], server.logged()
    faults, lines = server.logged(), server.requests_logged()
    server.post(CHAT, {**HELLO, **hints})
    assert server.logged() == faults, "each member is named once"
    new = server.requests_logged()[len(lines):]
    assert len(new) == 1 and new[0].startswith("aerie: /v1/chat/completions: prompt ") and "tokens/s" in new[0], new
    server.refused(CHAT, {**HELLO, "tools": [{"secret": 1}]})
    assert server.requests_logged()[-1] == "aerie: /v1/chat/completions: 400, unsupported_parameter, tools"


def test_a_begun_answer_goes_on(server):
    """A last message of the assistant is the beginning of the answer."""
    whole = server.post(CHAT, {**HELLO, "max_tokens": 12})["choices"][0]["message"]["content"]
    cut = whole.find(" ", len(whole) // 2)
    begun = {**HELLO, "messages": HELLO["messages"] + [{"role": "assistant", "content": whole[:cut]}]}
    rest = server.post(CHAT, {**begun, "max_tokens": 12})["choices"][0]["message"]["content"]
    assert rest.startswith(whole[cut:]) or whole[cut:].startswith(rest), (whole, rest)


def test_several_prompts(server):
    alone = [server.post(TEXT, {**STORY, "prompt": one, "n": 2})["choices"] for one in ("The", "A dog")]
    both = server.post(TEXT, {**STORY, "prompt": ["The", "A dog"], "n": 2})
    assert [one["text"] for one in both["choices"]] == [one["text"] for pair in alone for one in pair]
    assert [one["index"] for one in both["choices"]] == [0, 1, 2, 3]
    texts = [""] * 4
    for event in server.stream(TEXT, {**STORY, "prompt": ["The", "A dog"], "n": 2}):
        for choice in event["choices"]:
            texts[choice["index"]] += choice["text"]
    assert texts == [one["text"] for one in both["choices"]]


def test_echo(server):
    plain = server.post(TEXT, {**STORY, "prompt": "The"})["choices"][0]["text"]
    echoed = {**STORY, "prompt": "The", "echo": True}
    whole = server.post(TEXT, echoed)["choices"][0]["text"]
    assert whole in ("The" + plain, "The " + plain), (whole, plain)
    assert "".join(event["choices"][0]["text"] for event in server.stream(TEXT, echoed)) == whole
    assert server.post(TEXT, {**echoed, "max_tokens": 0})["choices"][0]["text"] == "The"
    status, error = server.refused(TEXT, {**STORY, "suffix": "x"})
    assert (status, error["param"]) == (400, "suffix") and "fill-in-the-middle" in error["message"], error


def test_a_retry_reads_one_token(server):
    for words in (3, 30):
        body = {**STORY, "prompt": "One two three four. " * words + str(time.time())}
        first, again = (server.post(TEXT, body) for _ in range(2))
        usage = again["usage"]
        assert usage["prompt_tokens_details"]["cached_tokens"] == usage["prompt_tokens"] - 1, usage
        assert first["choices"][0]["text"] == again["choices"][0]["text"]


def test_what_the_readme_shows(server):
    with open(os.path.join(repository(), "README.md"), encoding="utf-8") as file:
        shown = file.read().split("```console\ncurl ")[1].split("```")[0]
    url, *flags = shlex.split(shown.replace("\\\n", " "))
    assert flags[:2] == ["-H", "Content-Type: application/json"] and flags[2] == "-d" and len(flags) == 4
    whole = server.post(url.removeprefix("http://127.0.0.1:8080"), json.loads(flags[3]))
    assert whole["choices"][0]["message"]["content"] and whole["choices"][0]["aerie"]["seed"] == 7


def test_metrics_count(server):
    before = {name: server.metric(name) for name in ("answers_total", "generated_tokens_total", "prompt_tokens_total",
                                                     "prefix_hits_total", "time_to_first_token_seconds_count")}
    prompt = "A prompt of some length, so that its beginning is worth sharing with the ones that come after it. " * 4
    usage = [server.post(TEXT, {**STORY, "prompt": prompt, "n": 2})["usage"] for _ in range(2)]
    assert server.metric("answers_total") == before["answers_total"] + 4
    made = sum(one["completion_tokens"] for one in usage)
    assert server.metric("generated_tokens_total") == before["generated_tokens_total"] + made
    assert server.metric("prompt_tokens_total") == before["prompt_tokens_total"] + 2 * usage[0]["prompt_tokens"]
    assert server.metric("prefix_hits_total") == before["prefix_hits_total"] + 1
    assert usage[1]["prompt_tokens_details"]["cached_tokens"] >= usage[0]["prompt_tokens"] - 64
    assert server.metric("time_to_first_token_seconds_count") == before["time_to_first_token_seconds_count"] + 2
    assert server.metric('requests_total{path="/v1/completions",status="400"}') > 0
    assert server.metric('accepted_total{depth="1"}') > 0 and server.metric("tau") > 1


def test_all():
    # A tree that is sized by measurement would draft nothing on a busy machine.
    with Server("-c", "1024", "--tree", "16,4,4") as server:
        assert "takes no system message: its chat template leaves it out" in server.said(), server.said()
        for test in (test_small_ones, test_tokenize, test_chat_shapes, test_stop, test_logprobs, test_bias_and_penalties,
                     test_provenance, test_answers_that_do_not_end, test_seeds_are_reported, test_refusals,
                     test_other_servers_clients, test_a_begun_answer_goes_on, test_several_prompts, test_echo,
                     test_a_retry_reads_one_token, test_what_the_readme_shows, test_metrics_count):
            test(server)
    with Server("--alias", "mine", "--strict-model") as server:
        assert server.refused(TEXT, {**STORY, "model": "gpt-4"})[1]["code"] == "model_not_found"
        assert json.loads(server.get("/v1/models"))["data"][0]["id"] == "mine"
        assert server.post(TEXT, {**STORY, "model": "mine", "max_tokens": 1})["model"] == "mine"


main([test_all])
