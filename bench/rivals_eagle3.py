#!/usr/bin/env python3
"""Compares aerie and llama.cpp, each with an EAGLE-3 head: tokens per second with the same shape, weights and threads.

usage: bench/rivals_eagle3.py ROOT [--like SHAPE] [--weights TYPE] [-t THREADS] [-r ROUNDS] [--lengths N,N,...]
                              [--tokens N] [--seconds S] [--files FOLDER] [SIZES such as --layers 8]

ROOT: the root of a system in which llama.cpp, its quantiser and its converter are installed; / is this one, another is
entered by chroot. Target and head of random weights are made in ROOT/FOLDER (default: a temporary folder; a named one
is kept, and used as it is the next time).

Random weights take the same time as real ones, but nothing that they draft is accepted. So a cycle of llama.cpp, n
passes of the head and one of the target over n + 1 rows, is timed as it is, between tokens of one answer. It counts as
the tokens that a chain of n yields in our record of acceptance (bench/README.md), and llama.cpp's speed is the best
over all n. After acceptance llama.cpp would also run the head over the accepted tokens again; this is not counted
against it. Our figures are those of `aerie bench --draft eagle3`.

Run this only on a machine that does nothing else: llama.cpp's threads wait for each other at every op, and figures
taken beside a load are many times too slow. The load is printed before each round."""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
AERIE = os.environ.get("AERIE", str(REPOSITORY / "build" / "aerie"))
PROMPT = 128  # tokens
PORT = 18000 + os.getpid() % 10000


def parse():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("root")
    parser.add_argument("--like", default="llama-3.1-8b")
    parser.add_argument("--weights", default="q8_0", choices=["f16", "q8_0", "q4_0"])
    parser.add_argument("-t", dest="threads", type=int, default=os.cpu_count())
    parser.add_argument("-r", dest="rounds", type=int, default=3)
    parser.add_argument("--lengths", default="1,2,3,4,5,6,7,8")
    parser.add_argument("--tokens", type=int, default=32, help="cycles that are timed")
    parser.add_argument("--seconds", type=float, default=20, help="of our bench in a round")
    parser.add_argument("--files")
    options, sizes = parser.parse_known_args()
    options.lengths = [int(n) for n in options.lengths.split(",")]
    return options, sizes


def run(command, **settings):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **settings)
    if done.returncode != 0:
        sys.exit(f"rivals: {' '.join(map(str, command))} failed: {done.stderr.strip()[-400:]}")
    return done.stdout


class Root:
    """The root of the system in which llama.cpp is installed, and the folder in it that holds the models."""

    def __init__(self, path, folder):
        self.path = pathlib.Path(path).resolve()
        self.kept = folder is not None
        self.folder = self.path / folder.lstrip("/") if folder else pathlib.Path(
            tempfile.mkdtemp(prefix="aerie-rivals-", dir=self.path / "tmp"))
        self.folder.mkdir(parents=True, exist_ok=True)

    def within(self, path):
        return "/" + str(path.relative_to(self.path))

    def command(self, words):
        enter = [] if self.path == pathlib.Path("/") else ["chroot", str(self.path)]
        return enter + words

    def find(self, name):
        for found in sorted((self.path / "usr").rglob(name)):
            return found
        sys.exit(f"rivals: no {name} in {self.path}")

    def remove(self):
        if not self.kept:
            shutil.rmtree(self.folder)


def make_files(root, options, sizes):
    target, head = root.folder / "target.gguf", root.folder / "head.gguf"
    if target.exists() and head.exists():
        return root.within(target), root.within(head)
    made, floats = root.folder / "made", root.folder / "head-f16.gguf"
    print("making the files", file=sys.stderr)
    if not made.exists():
        run([AERIE, "synth", "--like", options.like, *sizes, "--head", "eagle3", "-o", made, "-q"])
    run([AERIE, "convert", made, "-o", target, "--weights", options.weights, "-q"])
    script, library = root.find("convert_hf_to_gguf.py"), root.find("conversion").parent
    run(root.command(["env", f"PYTHONPATH={root.within(library)}", "python3", root.within(script),
                      root.within(root.folder / "made-eagle3"), "--target-model-dir", root.within(made),
                      "--outtype", "f16", "--outfile", root.within(floats)]))
    if options.weights == "f16":
        floats.rename(head)
    else:
        run(root.command(["llama-quantize", "--pure", root.within(floats), root.within(head), options.weights]))
        floats.unlink()
    shutil.rmtree(made)
    shutil.rmtree(root.folder / "made-eagle3")
    return root.within(target), root.within(head)


class Server:
    """A running llama-server that drafts chains of `length` tokens; 0: without a head."""

    def __init__(self, root, files, length, threads):
        command = ["llama-server", "--host", "127.0.0.1", "--port", str(PORT), "-np", "1", "-t", str(threads), "-ngl", "0",
                   "-c", "1024", "-m", files[0]]
        if length > 0:
            command += ["-md", files[1], "--spec-type", "draft-eagle3", "-ngld", "0", "--spec-draft-p-min", "0",
                        "--spec-draft-n-max", str(length), "--spec-draft-n-min", str(length)]
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(root.command(command), stdout=self.log, stderr=self.log)

    def __enter__(self):
        for _ in range(3000):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=10)
                return self
            except OSError:
                if self.process.poll() is not None:
                    self.log.seek(0)
                    sys.exit("rivals: llama-server ended: " + self.log.read().decode(errors="replace")[-400:])
                time.sleep(0.1)
        self.__exit__()
        sys.exit("rivals: llama-server does not answer")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def answer(self, tokens):
        """The server's own `timings` after each of `tokens` tokens, in order."""
        body = {"prompt": [1] + [10 + i * 7919 % 3000 for i in range(PROMPT - 1)], "n_predict": tokens, "temperature": 0,
                "top_k": 1, "samplers": ["top_k"], "ignore_eos": True, "cache_prompt": False, "stream": True,
                "timings_per_token": True}
        request = urllib.request.Request(f"http://127.0.0.1:{PORT}/completion", data=json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        events = []
        with urllib.request.urlopen(request, timeout=3600) as lines:
            for line in lines:
                if line.startswith(b"data: {"):
                    timings = json.loads(line[6:]).get("timings")
                    if timings:
                        events.append(timings)
        return events


def their_cycle(root, files, length, options):
    """Seconds of a cycle of llama.cpp with chains of `length` tokens."""
    with Server(root, files, length, options.threads) as server:
        server.answer(4)
        events = server.answer(options.tokens + length + 4)
    # The first cycles include the prompt's end, the last ones have fewer than `length` tokens to draft.
    first, last = events[1], events[-length - 3]
    tokens = last["predicted_n"] - first["predicted_n"]
    accepted = last.get("draft_n_accepted", 0) - first.get("draft_n_accepted", 0)
    drafted = last.get("draft_n", 0) - first.get("draft_n", 0)
    cycles = tokens - accepted
    if length > 0 and not 0.9 <= drafted / (cycles * length) <= 1.1:
        sys.exit(f"rivals: {cycles} cycles of llama.cpp drafted {drafted} tokens, not {length} each")
    return (last["predicted_ms"] - first["predicted_ms"]) * 1e-3 / cycles


def bench(flags):
    return json.loads(run([AERIE, "bench", *flags, "--json", "-q"]))


def recorded_tau(length):
    """The acceptance length, tau, of a chain of `length` tokens in our record, which is the same for every model."""
    result = bench(["--like", "aerie-tiny", "--layers", "1", "--vocab", "100", "--draft", "eagle3", "--tree",
                    f"{length + 1},{length},1", "--seconds", "0", "--rows", "1", "-p", "1", "-t", "1"])
    return result["cycle"]["tau"]


def measure(root, files, taus, options, sizes):
    """One round, also printed: ({length of the chain: seconds of llama.cpp's cycle}, report of `aerie bench`)."""
    theirs = {length: their_cycle(root, files, length, options) for length in [0, *options.lengths]}
    ours = bench(["--like", options.like, *sizes, "--draft", "eagle3", "--weights", options.weights, "-t", options.threads,
                  "-p", PROMPT, "--rows", "1", "--seconds", options.seconds])
    cells = [f"{n}: {theirs[n] * 1e3:.1f} ms, {taus[n] / theirs[n]:.2f} tok/s" for n in theirs]
    print(f"theirs, by length of the chain: {'; '.join(cells)}")
    print(f"ours: read {ours['read_gb_per_s']:.1f} GB/s; plain {ours['plain_tokens_per_second']:.2f} tok/s; level "
          f"{ours['draft_level_seconds'] * 1e3:.1f} ms")
    for cycle in ours["cycles"]:
        print(f"      tree {cycle['tree']}: {cycle['seconds'] * 1e3:.1f} ms, tau {cycle['tau']:.2f}, "
              f"{cycle['tokens_per_second']:.2f} tok/s", flush=True)
    return theirs, ours


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def conclude(rounds, taus):
    def their_speed(theirs):
        return max(taus[n] / seconds for n, seconds in theirs.items() if n > 0)

    best = [max((n for n in theirs if n > 0), key=lambda n: taus[n] / theirs[n]) for theirs, _ in rounds]
    print(f"their best chain: {' '.join(map(str, best))}; of plain decoding: "
          f"{spread([their_speed(theirs) * theirs[0] for theirs, _ in rounds])} x")
    print(f"our plain decoding over theirs: "
          f"{spread([ours['plain_tokens_per_second'] * theirs[0] for theirs, ours in rounds])} x")
    for number, cycle in enumerate(rounds[0][1]["cycles"]):
        speeds = [ours["cycles"][number]["tokens_per_second"] for _, ours in rounds]
        print(f"ours with tree {cycle['tree']}: {spread([ours['cycles'][number]['speedup'] for _, ours in rounds])} x our plain "
              f"decoding; over their best: {spread([own / their_speed(theirs) for own, (theirs, _) in zip(speeds, rounds)])} x")


def main():
    options, sizes = parse()
    root = Root(options.root, options.files)
    try:
        files = make_files(root, options, sizes)
        taus = {0: 1.0, **{length: recorded_tau(length) for length in options.lengths}}
        print("tokens a cycle of a chain: " + ", ".join(f"{n}: {tau:.2f}" for n, tau in taus.items()))
        rounds = []
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}, load of this machine {os.getloadavg()[0]:.1f}", flush=True)
            rounds.append(measure(root, files, taus, options, sizes))
        conclude(rounds, taus)
    finally:
        root.remove()


main()
