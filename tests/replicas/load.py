"""50 conversations of 10 turns, eight clients: the same requests in each run."""
import http.client
import json
import queue
import threading
import time
from dataclasses import dataclass

CONVERSATIONS, TURNS, CLIENTS = 50, 10, 8
CHAT = "/v1/chat/completions"
TOPICS = ["rivers", "clocks", "bread", "maps", "wool", "glass", "bells", "salt", "kites", "moss"]


@dataclass
class Outcome:
    text: str | None  # None: the request failed
    replica: str | None
    began: float
    ended: float
    status: int | None = None
    error: dict | None = None  # the error of the reply; none if a stream was cut off


def body_of(conversation, turn, earlier):
    """The body of a request; `earlier`: the conversation's messages so far."""
    question = f"Talk {conversation}, question {turn}: what do you know about {TOPICS[(conversation + turn) % 10]}?"
    return {"messages": [*earlier, {"role": "user", "content": question}], "max_tokens": 8, "temperature": 0.7,
            "seed": 100 * conversation + turn, "stream": conversation % 2 == 1}


def read_stream(reply):
    """The text of a streamed reply; None if the stream broke off before [DONE]."""
    text = ""
    try:
        for line in reply:
            if line == b"data: [DONE]\n":
                return text
            if line.startswith(b"data: "):
                part = json.loads(line[6:])
                text += part["choices"][0]["delta"].get("content") or ""
    except (http.client.IncompleteRead, ConnectionError):
        pass
    return None


def ask(client, conversation, body):
    """The Outcome of one request, as a client of OpenAI's API sees it. `conversation`: None sends no such header."""
    headers = {"Content-Type": "application/json"}
    if conversation is not None:
        headers["X-Conversation"] = conversation
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=120)
    outcome = Outcome(None, None, time.monotonic(), 0)
    try:
        connection.request("POST", CHAT, json.dumps(body), headers)
        reply = connection.getresponse()
        outcome.status, outcome.replica = reply.status, reply.getheader("X-Replica")
        if reply.status != 200:
            outcome.error = json.loads(reply.read())["error"]
        elif body["stream"]:
            outcome.text = read_stream(reply)
        else:
            outcome.text = json.loads(reply.read())["choices"][0]["message"]["content"]
    finally:
        connection.close()
    outcome.ended = time.monotonic()
    return outcome


class Load:
    """The requests of all conversations. The first run makes them, since a request holds earlier answers; later runs
    repeat them."""

    def __init__(self):
        self.bodies = {}

    def run(self, client, turns=range(TURNS), when=0, then=None):
        """{(conversation, turn): Outcome}; calls `then` once `when` requests are through, while others run."""
        outcomes, wrong, to_do = {}, [], queue.Queue()
        reached = threading.Event()
        for conversation in range(CONVERSATIONS):
            to_do.put((conversation, turns[0]))

        def work():
            while not wrong:
                try:
                    conversation, turn = to_do.get_nowait()
                except queue.Empty:
                    return
                try:
                    outcomes[conversation, turn] = ask(client, f"conversation-{conversation}",
                                                       self.body(conversation, turn))
                except Exception as error:  # any exception is reported by run()
                    wrong.append((conversation, turn, repr(error)))
                    return
                self.learn(conversation, turn, outcomes[conversation, turn])
                if turn + 1 in turns:
                    to_do.put((conversation, turn + 1))
                if len(outcomes) >= when:
                    reached.set()

        threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        if then:
            assert reached.wait(120), wrong
            then()
        for thread in threads:
            thread.join()
        assert not wrong, wrong[:3]
        assert len(outcomes) == CONVERSATIONS * len(turns)
        return outcomes

    def body(self, conversation, turn):
        return self.bodies.setdefault((conversation, turn), body_of(conversation, turn, []))

    def learn(self, conversation, turn, outcome):
        if (conversation, turn + 1) in self.bodies or outcome.text is None:
            return
        messages = self.bodies[conversation, turn]["messages"]
        self.bodies[conversation, turn + 1] = body_of(
            conversation, turn + 1, [*messages, {"role": "assistant", "content": outcome.text}])
