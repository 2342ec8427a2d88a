#!/usr/bin/env python3
"""Decoding speed and acceptance length of every drafter on the bundled model, for the table of bench/RESULTS.md.

usage: bench/generation.py [ROUNDS [FLAG...]]      (needs build/aerie; default: 3 rounds; flags for all, as --weights q8_0)

Each round runs every drafter, so that a drifting machine affects all alike. The prompts are those of
tests/data/greedy.json, answered with at most 128 tokens. Speed is that of decoding alone (first token and loading not
counted): the median over rounds of tokens / seconds summed over the prompts."""
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DRAFTERS = {"none": ["none"], "chain": ["chain", "--tree", "published"], "eagle1": ["eagle1", "--tree", "published"],
            "eagle2": ["eagle2", "--tree", "60,6,10"], "auto": ["eagle2", "--tree", "auto"]}
SETTINGS = [["--temp", "0"], ["--temp", "1", "--seed", "1"]]
EXTRA = sys.argv[2:]


def run(prompt, drafter, setting):
    command = [ROOT / "build" / "aerie", "generate", "--json", "-q", "-n", "128", "--draft", *DRAFTERS[drafter],
               *setting, *EXTRA, "-p", prompt]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def measure(prompts, drafter, setting):
    """(tokens, cycles, seconds of decoding, ids of each text) of all prompts, without the first token of each text."""
    tokens = cycles = seconds = 0
    texts = []
    for prompt in prompts:
        result = run(prompt, drafter, setting)
        stats = result["stats"]
        tokens += len(result["ids"]) - 1
        cycles += stats["cycles"]
        seconds += stats["decode_seconds"]
        texts.append(result["ids"])
    return tokens, cycles, seconds, texts


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    prompts = [entry["prompt"] for entry in json.load(open(ROOT / "tests" / "data" / "greedy.json"))]
    print("| | " + " | ".join(f"tau {s[1]}, tokens/s {s[1]}" for s in SETTINGS) + " |")
    speeds, taus, plain, different = {}, {}, {}, 0
    for _ in range(rounds):
        for at, setting in enumerate(SETTINGS):
            for drafter in DRAFTERS:
                tokens, cycles, seconds, texts = measure(prompts, drafter, setting)
                speeds.setdefault((drafter, at), []).append(tokens / seconds)
                taus[drafter, at] = tokens / cycles
                plain.setdefault(at, texts)
                different += texts != plain[at]
    for drafter in DRAFTERS:
        cells = [f"{taus[drafter, at]:.2f} | {statistics.median(speeds[drafter, at]):.0f} "
                 f"({min(speeds[drafter, at]):.0f}-{max(speeds[drafter, at]):.0f})"
                 for at in range(len(SETTINGS))]
        print(f"| `{drafter}` | " + " | ".join(cells) + " |")
    print(f"rounds in which a drafter's ids differ from plain decoding's: {different}")


if __name__ == "__main__":
    main()
