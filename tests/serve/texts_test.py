#!/usr/bin/env python3
"""Texts of the server are those of `aerie generate` with the same seed: drafted or not, alone or with 7 others."""
import threading

from running import Server, finish_of, generate, main, text_of

PROMPTS = ["Once upon a time", "The quick brown fox", "In the beginning", "She opened the door and",
           "There was a dog called", "The sun was", "My friend said that", "Far away in the hills"]
TOKENS = 40


def request(i, **more):
    return {"prompt": PROMPTS[i], "max_tokens": TOKENS, "seed": 100 + i, "temperature": 0.8 if i % 2 else 0,
            "top_p": 0.9, **more}


def wanted(i):
    flags = ["-n", str(TOKENS), "-s", str(100 + i), "--temp", "0.8" if i % 2 else "0", "--top-p", "0.9", "--no-special"]
    return generate(PROMPTS[i], *flags)


def test_alone_with_and_without_drafts(server, texts):
    for i, want in enumerate(texts):
        for draft in (True, False):
            whole = server.post("/v1/completions", request(i, draft=draft))
            choice = whole["choices"][0]
            assert choice["text"] == want["text"], (choice["text"], want["text"])
            assert choice["finish_reason"] == want["finish_reason"]
            assert whole["usage"]["completion_tokens"] == len(want["ids"])
            assert whole["usage"]["prompt_tokens"] == len(want["prompt_ids"])
            assert choice["aerie"]["seed"] == 100 + i
            assert draft or choice["aerie"]["tau"] in (0, 1), choice["aerie"]


def test_streamed_with_seven_others(server, texts):
    wrong = []

    def ask(i, rounds):
        for round in range(rounds):
            events = server.stream("/v1/completions", request(i, draft=round % 2 == 0))
            if text_of(events) != texts[i]["text"] or finish_of(events) != texts[i]["finish_reason"]:
                wrong.append((i, round, text_of(events)))

    threads = [threading.Thread(target=ask, args=(i, 3)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong


def test_ids_for_a_prompt(server, texts):
    whole = server.post("/v1/completions", {**request(1), "prompt": texts[1]["prompt_ids"]})
    assert whole["choices"][0]["text"] == texts[1]["text"]


def test_choices_are_seeds_in_a_row(server, texts):
    whole = server.post("/v1/completions", {**request(1), "n": 3})
    assert [choice["index"] for choice in whole["choices"]] == [0, 1, 2]
    assert whole["choices"][0]["text"] == texts[1]["text"]
    for i in (1, 2):
        alone = server.post("/v1/completions", {**request(1), "seed": 101 + i})
        assert whole["choices"][i]["text"] == alone["choices"][0]["text"]
        assert whole["choices"][i]["aerie"]["seed"] == 101 + i
    events = server.stream("/v1/completions", {**request(1), "n": 3})
    assert [text_of(events, i) for i in range(3)] == [choice["text"] for choice in whole["choices"]]


def test_chats_are_generates(server, _):
    chat = {"messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": TOKENS, "temperature": 0.7,
            "seed": 5}
    want = generate("Tell me a story.", "--chat", "-n", str(TOKENS), "--temp", "0.7", "-s", "5")
    whole = server.post("/v1/chat/completions", chat)
    assert whole["choices"][0]["message"]["content"] == want["text"]
    assert text_of(server.stream("/v1/chat/completions", chat)) == want["text"]
    # Second turn: whatever is kept of the first one changes nothing.
    more = {**chat, "messages": chat["messages"] + [{"role": "assistant", "content": want["text"]},
                                                    {"role": "user", "content": "And then?"}]}
    second = server.post("/v1/chat/completions", more)
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
    with Server("--keep", "0", "--parallel", "1") as fresh:
        again = fresh.post("/v1/chat/completions", more)
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert again["choices"][0]["message"] == second["choices"][0]["message"]


def test_all():
    texts = [wanted(i) for i in range(len(PROMPTS))]
    with Server("--parallel", "3") as server:
        for test in (test_alone_with_and_without_drafts, test_streamed_with_seven_others, test_ids_for_a_prompt,
                     test_choices_are_seeds_in_a_row, test_chats_are_generates):
            test(server, texts)


main([test_all])
