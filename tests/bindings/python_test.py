#!/usr/bin/env python3
"""The Python package streams, cancels, keeps a talk and tells where tokens come from; misuse raises and never crashes.

usage: python_test.py REPOSITORY LIBRARY PROGRAM
"""
import asyncio
import gc
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

REPOSITORY, LIBRARY, PROGRAM = map(os.path.abspath, sys.argv[1:4])
os.environ["AERIE_LIBRARY"] = LIBRARY
sys.path.insert(0, os.path.join(REPOSITORY, "bindings", "python"))
import aerie  # noqa: E402

MODEL = os.path.join(REPOSITORY, "models", "aerie-tiny")
SMALL = {"device": "cpu", "threads": 1, "context": 512, "cache": "", "tree": (12, 4, 4)}
PROMPT = "USER: A baker makes 24 rolls in the morning. How many rolls are left? ASSISTANT:"


def opened(**more):
    return aerie.Model(MODEL, **{**SMALL, **more})


def in_another_process(body, wait=None):
    """The exit status and output of a program that begins as this one does."""
    start = (f"import os, sys, threading, time\nos.environ['AERIE_LIBRARY'] = {LIBRARY!r}\n"
             f"sys.path.insert(0, {os.path.join(REPOSITORY, 'bindings', 'python')!r})\nimport aerie\n"
             f"model = aerie.Model({MODEL!r}, **{SMALL!r})\n")
    program = subprocess.Popen([sys.executable, "-c", start + body], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if wait:
        wait(program)
    out, err = program.communicate(timeout=60)
    return program.returncode, out, err


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = opened(sessions=4)

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def setUp(self):
        self.talk = self.model.session()

    def tearDown(self):
        self.talk.close()

    def test_text_is_that_of_the_program(self):
        said = subprocess.run([PROGRAM, "generate", "-m", MODEL, "-p", PROMPT, "-n", "40", "--temp", "0", "-q", "--json"],
                              check=True, capture_output=True, text=True).stdout
        answer = self.talk.stream(PROMPT, max_tokens=40, sampling=aerie.Sampling())
        pieces = list(answer)
        self.assertEqual(answer.text, json.loads(said)["text"])
        self.assertEqual("".join(map(str, pieces)), answer.text)
        self.assertEqual([one for piece in pieces for one in piece.ids], [token.id for token in answer.tokens])
        self.assertEqual((len(answer.tokens), answer.finish), (40, aerie.Finish.LENGTH))
        self.assertGreater(len(pieces), 5)
        self.assertLess(len(pieces), 40, "drafts are accepted")

    def test_provenance(self):
        answer = self.talk.stream(PROMPT, max_tokens=30, alternatives=2, sampling=aerie.Sampling())
        answer.read()
        self.assertEqual(answer.tokens[0].origin, aerie.Origin.AFTER_PROMPT)
        self.assertTrue(any(token.drafted and token.depth > 0 for token in answer.tokens))
        for token in answer.tokens:
            self.assertEqual(token.alternatives[0], (token.id, token.logprob))
            self.assertEqual(token.drafted, token.depth > 0)
        self.assertEqual(b"".join(token.bytes for token in answer.tokens).decode(), " " + answer.text)
        self.assertGreater(answer.statistics.tau, 1)
        cycle = self.talk.cycle()
        self.assertEqual(len(cycle.tokens), len(cycle.parents))
        plain = self.talk.stream(PROMPT, max_tokens=30, drafts=False, sampling=aerie.Sampling())
        self.assertEqual(plain.read(), answer.text)
        self.assertIsNone(plain.tokens[0].logprob)

    def test_a_talk_is_kept(self):
        first = self.talk.say("Hello", max_tokens=12, seed=7)
        first.read()
        second = self.talk.say("And then?", max_tokens=12, seed=7)
        text = second.read()
        self.assertGreater(second.reused_tokens, first.prompt_tokens)
        self.assertEqual([one["role"] for one in self.talk.messages], ["user", "assistant"] * 2)
        self.assertEqual(self.talk.messages[1]["content"], first.text)
        with tempfile.TemporaryDirectory() as folder:
            self.talk.save(os.path.join(folder, "talk"))
            with self.model.load(os.path.join(folder, "talk")) as again:
                self.assertEqual(again.ids, self.talk.ids)
                third = again.stream(self.talk.messages[:3], max_tokens=12, seed=7)
                self.assertEqual(third.read(), text)
                self.assertGreater(third.reused_tokens, 10)
        with self.talk.fork(5) as fork:
            self.assertEqual(fork.ids, self.talk.ids[:5])
        self.talk.rewind(3)
        self.assertEqual(len(self.talk.ids), 3)

    def test_cancelled_and_resumed(self):
        answer = self.talk.stream(PROMPT, max_tokens=400, ignore_eos=True)
        for count, _ in enumerate(answer):
            if count == 3:
                threading.Thread(target=answer.cancel).start()
        self.assertEqual(answer.finish, aerie.Finish.CANCELLED)
        left = self.talk.stream(PROMPT, max_tokens=400, ignore_eos=True)
        for _ in left:
            break
        so_far = left.text
        for _ in left:  # a loop that was left is gone on with
            break
        self.assertGreater(len(left.text), len(so_far))
        newer = self.talk.stream(PROMPT, max_tokens=2)
        with self.assertRaises(aerie.UsageError):
            next(left)
        self.assertEqual(left.finish, aerie.Finish.CANCELLED)
        left.cancel()  # it is not the running one
        newer.read()
        self.assertEqual(newer.finish, aerie.Finish.LENGTH)
        with self.assertRaises(aerie.UsageError):
            iter(newer)

    def test_asynchronously(self):
        async def both():
            async def read(talk):
                return [piece.text async for piece in talk.stream(PROMPT, max_tokens=12, sampling=aerie.Sampling())]
            with self.model.session() as other:
                return await asyncio.gather(read(self.talk), read(other))
        one, other = asyncio.run(both())
        self.assertEqual("".join(one), "".join(other))

    def test_prompts_in_all_spellings(self):
        ids = self.model.tokenize(PROMPT, start=True)
        self.assertEqual(self.model.detokenize(ids), PROMPT)
        self.assertEqual(self.talk.stream(ids, max_tokens=4, seed=1).read(), self.talk.stream(PROMPT, max_tokens=4, seed=1).read())
        messages = [{"role": "user", "content": "Grüß dich"}]
        self.assertEqual(self.model.render(messages), "<s>USER: Grüß dich ASSISTANT:")
        one = self.talk.stream(messages, max_tokens=4, seed=1).read()
        self.assertEqual(self.talk.stream({"messages": messages}, max_tokens=4, seed=1).read(), one)
        self.assertEqual(self.model.token_bytes(self.model.info.bos), b"")
        self.assertEqual(self.talk.stream(PROMPT, max_tokens=9, stops="cost", sampling=aerie.Sampling()).read(), "The baker ")

    def test_logits_are_edited_and_progress_is_reported(self):
        reports = []
        first = self.talk.stream(PROMPT, max_tokens=1, sampling=aerie.Sampling(), progress=lambda *now: reports.append(now))
        first.read()
        self.assertEqual(reports[0][0], 0)
        forbidden = first.tokens[0].id

        def edit(ids, logits):
            self.assertEqual(len(logits), self.model.info.vocab)
            logits[forbidden] = float("-inf")

        other = self.talk.stream(PROMPT, max_tokens=8, sampling=aerie.Sampling(), edit_logits=edit)
        other.read()
        self.assertNotIn(forbidden, [token.id for token in other.tokens])


class Models(unittest.TestCase):
    def test_what_is_here(self):
        self.assertIn("aerie-tiny", [one.name for one in aerie.models()])
        self.assertIn("cpu", [one.name for one in aerie.devices()])
        self.assertTrue(aerie.forecast(MODEL, **SMALL).fits)
        lines = []
        aerie.set_log(lambda level, line: lines.append(line))
        stages = []
        with opened(progress=lambda *now: stages.append(now)) as model:
            self.assertEqual((model.info.architecture, model.info.weights), ("llama", "f16"))
        aerie.set_log(None)
        self.assertEqual(len(lines), 1)
        self.assertEqual({stage for stage, _, _ in stages}, {aerie.Stage.MODEL, aerie.Stage.HEAD})
        self.assertEqual(stages[-1][1], stages[-1][2])

    def test_causes(self):
        for error, given in ((aerie.NotFoundError, {"model": "no-such-model"}), (aerie.NoDeviceError, {"device": "abacus"}),
                             (aerie.UsageError, {"weights": "q9"}), (aerie.UsageError, {"context": 1 << 40}),
                             (aerie.UsageError, {"model": "a\0b"}), (aerie.UsageError, {"model": 7}),
                             (aerie.UsageError, {"threads": "4"}), (aerie.UsageError, {"tree": 3}),
                             (aerie.CancelledError, {"progress": lambda *_: False})):
            with self.assertRaises(error, msg=given) as caught:
                aerie.Model(**{"model": MODEL, **SMALL, **given})
            self.assertNotEqual(caught.exception.cause, aerie.Cause.NONE)
        with opened() as model, model.session() as talk:
            with self.assertRaises(aerie.SessionsError):
                model.session()
            with self.assertRaises(aerie.TooLongError):
                talk.stream(PROMPT * 50)
            with self.assertRaises(aerie.NotFoundError):
                model.load("/no/such/file")
            with self.assertRaises(aerie.FileError):
                talk.save("/no/such/folder/file")


class Misuse(unittest.TestCase):
    def test_closed(self):
        model = opened()
        talk = model.session()
        answer = talk.stream(PROMPT, max_tokens=50)
        next(answer)
        model.close()
        model.close()
        for call in (model.session, lambda: model.tokenize("x"), lambda: model.load("x"), lambda: model.render([]),
                     lambda: next(answer), lambda: talk.stream("x"), lambda: talk.ids, talk.cycle, lambda: talk.save("x"),
                     lambda: talk.rewind(0), talk.fork, lambda: talk.say("x")):
            with self.assertRaises(aerie.ClosedError):
                call()
        talk.cancel()
        answer.cancel()
        talk.close()

    def test_impossible_requests(self):
        with opened() as model, model.session() as talk:
            for prompt in (None, 7, b"x", [], ["x"], [1 << 40], [-1], [10 ** 6], {"messages": 3}, [{"role": "user"}], "\ud800"):
                with self.assertRaises(aerie.Error, msg=repr(prompt)):
                    talk.stream(prompt)
            for options in ({"max_tokens": -1}, {"max_tokens": 1.5}, {"seed": -1}, {"seed": 1 << 64}, {"stops": [""]},
                            {"stops": ["a\0"]}, {"stops": [3]}, {"alternatives": 1 << 30}, {"sampling": 3}, {"hot": True},
                            {"sampling": aerie.Sampling(temperature=-1)}, {"sampling": aerie.Sampling(top_p=float("nan"))}):
                with self.assertRaises(aerie.Error, msg=options):
                    talk.stream(PROMPT, **options)
            with self.assertRaises(aerie.UsageError):
                model.detokenize([1 << 40])
            with self.assertRaises(aerie.UsageError):
                talk.cycle()
            self.assertTrue(talk.stream("a\0b", max_tokens=2).read() is not None)
            self.assertEqual(len(talk.stream(PROMPT, max_tokens=3, ignore_eos=True).read().split()) > 0, True)

    def test_callbacks_that_raise(self):
        def wrong(*_):
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            opened(progress=wrong)
        aerie.set_log(wrong)
        with opened() as model, model.session() as talk:
            aerie.set_log(None)
            for option in ("progress", "edit_logits"):
                answer = talk.stream(PROMPT + option, max_tokens=4, **{option: wrong})
                with self.assertRaises(KeyError):
                    answer.read()
                self.assertEqual(answer.finish, aerie.Finish.CANCELLED)
            with self.assertRaises(aerie.BusyError):  # from within its own step
                talk.stream(PROMPT + "!", max_tokens=4, edit_logits=lambda ids, logits: talk.ids).read()

            def close(ids, logits):
                talk.close()
                model.close()

            answer = talk.stream(PROMPT + "?", max_tokens=40, edit_logits=close)
            list(answer)
            self.assertEqual(answer.finish, aerie.Finish.CANCELLED)
            with self.assertRaises(aerie.ClosedError):
                talk.stream(PROMPT)

    def test_two_threads_in_one_session(self):
        with opened() as model, model.session() as talk:
            answer = talk.stream(PROMPT, max_tokens=400, ignore_eos=True)
            errors, others = [], []

            def read():
                try:
                    for _ in answer:
                        pass
                except aerie.BusyError as error:
                    errors.append(error)
                except Exception as error:  # any other is a failure of the test
                    others.append(error)

            threads = [threading.Thread(target=read) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(others, [])
            self.assertGreater(len(errors), 0)

    def test_closed_while_others_use_it(self):
        for seed in range(6):
            chance = random.Random(seed)
            model = opened(sessions=3)
            unexpected = []

            def use():
                try:
                    while True:
                        with model.session() as talk:
                            talk.stream(PROMPT, max_tokens=200, ignore_eos=True).read()
                            model.tokenize(PROMPT)
                except (aerie.ClosedError, aerie.SessionsError):
                    pass
                except Exception as error:
                    unexpected.append(error)

            threads = [threading.Thread(target=use) for _ in range(3)]
            for thread in threads:
                thread.start()
            time.sleep(chance.random() * 0.1)
            model.close()
            for thread in threads:
                thread.join(30)
                self.assertFalse(thread.is_alive())
            self.assertEqual(unexpected, [])

    def test_garbage_in_any_order(self):
        for order in ("mta", "mat", "tma", "tam", "amt", "atm"):
            model = opened()
            talk = model.session()
            answer = talk.stream(PROMPT, max_tokens=5, edit_logits=lambda ids, logits: None)
            next(answer)
            for name in order:
                if name == "m":
                    del model
                elif name == "t":
                    del talk
                else:
                    del answer
                gc.collect()

    def test_the_end_of_the_process(self):
        endings = ("for piece in model.session().stream('x', max_tokens=50): break\n",
                   "a = model.session().stream('x', max_tokens=400, ignore_eos=True)\n"
                   "threading.Thread(target=a.read, daemon=True).start()\ntime.sleep(0.05)\n",
                   "a = model.session().stream('x', max_tokens=400, ignore_eos=True)\n"
                   "threading.Thread(target=a.read, daemon=True).start()\ntime.sleep(0.05)\nos._exit(0)\n",
                   "aerie.set_log(print)\nmodel.kept = model\n")
        for body in endings:
            status, _, said = in_another_process(body)
            self.assertEqual((status, said), (0, ""), body)

    def test_forked(self):
        status, out, said = in_another_process(
            "talk = model.session()\nanswer = talk.stream('x', max_tokens=9)\nnext(answer)\nchild = os.fork()\n"
            "if child == 0:\n    try:\n        next(answer)\n    except aerie.ClosedError:\n        talk.close(); model.close()\n"
            "        del talk, answer, model\n        sys.exit(7)\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\nanswer.read()\n")
        self.assertEqual((status, out, said), (0, "7\n", ""))

    def test_ctrl_c(self):
        def interrupt(program):
            program.stdout.readline()
            time.sleep(0.2)
            program.send_signal(signal.SIGINT)

        status, out, said = in_another_process(
            "print('here', flush=True)\ntry:\n    talk = model.session()\n    while True:\n"
            "        talk.stream('x', max_tokens=400, ignore_eos=True).read()\n"
            "except KeyboardInterrupt:\n    print('heard', talk.stream('x', max_tokens=1).read() is not None)\n", interrupt)
        self.assertEqual((status, out, said), (0, "heard True\n", ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
