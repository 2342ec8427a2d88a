#!/usr/bin/env python3
"""aerie and llama.cpp in turn at several sequences in a pass, on the same shape, weight type and threads.

usage: bench/rivals_sequences.py GGUF [--like SHAPE | -m MODEL] [--weights TYPE] [--sequences N,N,...] [-t THREADS] [-r ROUNDS]

Plain decoding behind 128 tokens of each sequence: `aerie bench --sequences` beside llama-batched-bench (32 tokens of each);
where the model has a head, or its shape gets a random one, also ours with drafts, whose acceptance is replayed from the
record. Prints tokens per second of all sequences together, medians over rounds, and ratios.

llama-batched-bench is found on the PATH or named by LLAMA_BATCHED_BENCH, which may be a command of several words
(LLAMA_BATCHED_BENCH="chroot /some/root llama-batched-bench"; GGUF is then a path in there).
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys

kPrompt, kAnswer = 128, 32


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("--like", default="tinyllama-1.1b")
    parser.add_argument("-m", dest="model")
    parser.add_argument("--weights", help="of a SHAPE: q8_0; of a MODEL: as they are stored")
    parser.add_argument("--sequences", default="1,2,4,8")
    parser.add_argument("--draft", default=None, help="none: plain decoding alone")
    parser.add_argument("-t", dest="threads", type=int, default=os.cpu_count())
    parser.add_argument("-r", dest="rounds", type=int, default=3)
    return parser.parse_args()


def output_of(command):
    try:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"rivals: {shlex.join(command)} failed: {(getattr(error, 'stderr', None) or str(error)).strip()[-300:]}")


def ours(options):
    program = os.environ.get("AERIE", os.path.join(os.path.dirname(__file__), "..", "build", "aerie"))
    model = ["-m", options.model] if options.model else ["--like", options.like]
    draft = ["--draft", options.draft] if options.draft else []
    weights = options.weights or (None if options.model else "q8_0")
    kind = ["--weights", weights] if weights else []
    command = [program, "bench", *model, *draft, *kind, "-t", str(options.threads), "-p", str(kPrompt),
               "--rows", "1", "--sequences", options.sequences, "--seconds", "30", "--json", "-q"]
    report = json.loads(output_of(command))
    return report, {each["sequences"]: each for each in report["sequences"]}


def theirs(options, counts):
    command = shlex.split(os.environ.get("LLAMA_BATCHED_BENCH", "llama-batched-bench"))
    command += ["-m", options.gguf, "-ngl", "0", "-t", str(options.threads), "-tb", str(options.threads), "-npp", str(kPrompt),
                "-ntg", str(kAnswer), "-npl", options.sequences, "-c", str(max(counts) * (kPrompt + kAnswer) + 64),
                "--output-format", "jsonl"]
    lines = [json.loads(line) for line in output_of(command).splitlines() if line.startswith("{")]
    rates = {line["pl"]: line["speed_tg"] for line in lines}
    if sorted(rates) != sorted(counts):
        sys.exit(f"rivals: {shlex.join(command)} measured {sorted(rates)} of {sorted(counts)}")
    return rates


def main():
    options = parsed()
    counts = [int(count) for count in options.sequences.split(",")]
    rounds = []
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
        rounds.append((*ours(options), theirs(options, counts)))
    first = rounds[0][0]
    print(f"{first['model']}, {first['weights']}; {first['device_description']}, {options.threads} threads")
    print("sequences   llama.cpp   plain           ratio   drafted   over plain   tau")
    for count in counts:
        peer = [rival[count] for _, _, rival in rounds]
        plain = [mine[count]["plain_tokens_per_second"] for _, mine, _ in rounds]
        ratios = sorted(a / b for a, b in zip(plain, peer))
        line = (f"{count:9} {statistics.median(peer):11.1f} {statistics.median(plain):7.1f} "
                f"{statistics.median(ratios):6.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})")
        if "speedup" in rounds[0][1][count]:
            drafted = statistics.median(mine[count]["tokens_per_second"] for _, mine, _ in rounds)
            speedups = sorted(mine[count]["speedup"] for _, mine, _ in rounds)
            tau = statistics.median(mine[count]["tau"] for _, mine, _ in rounds)
            line += f" {drafted:9.1f} {statistics.median(speedups):6.2f} ({speedups[0]:.2f}-{speedups[-1]:.2f}) {tau:5.2f}"
        print(line)


main()
