#!/usr/bin/env bash
# aerie and llama.cpp in turn on the same shape, weight type and threads: plain decoding, and passes
# over 8 and 16 rows. Prints each round and the ratios (their time over ours), medians over rounds.
# T(8) and T(16) are what verifying a tree costs us: logits and choices of all rows. llama-bench
# computes the logits of a prompt's last row only; prompt(16) is that work of ours.
#
# usage: bench/rivals.sh GGUF [--like SHAPE | -m MODEL] [--weights TYPE] [-t THREADS] [-r ROUNDS]
#
# llama-bench is found on the PATH or named by LLAMA_BENCH, which may be a command of several words
# (LLAMA_BENCH="chroot /some/root llama-bench"; GGUF is then a path in there). GGUF holds the same
# shape in the same type.
set -euo pipefail

usage() {
  sed -n 's/^# usage: /usage: /p' "$0" >&2
  exit 2
}

gguf= model=(--like tinyllama-1.1b) weights=q8_0 threads=$(nproc) rounds=3
while [ $# -gt 0 ]; do
  case $1 in
    --like | -m) model=("$1" "${2:?$1 needs a value}") && shift 2 ;;
    --weights) weights=${2:?$1 needs a value} && shift 2 ;;
    -t) threads=${2:?$1 needs a value} && shift 2 ;;
    -r) rounds=${2:?$1 needs a value} && shift 2 ;;
    -*) usage ;;
    *) [ -z "$gguf" ] || usage
       gguf=$1 && shift ;;
  esac
done
[ -n "$gguf" ] || usage

read -ra llama <<<"${LLAMA_BENCH:-llama-bench}"
if ! command -v "${llama[0]}" >/dev/null; then
  echo "rivals: no ${llama[0]}: install llama.cpp, or name its llama-bench by LLAMA_BENCH" >&2
  exit 1
fi
aerie=${AERIE:-$(dirname "$0")/../build/aerie}
if [ ! -x "$aerie" ]; then
  echo "rivals: no $aerie: build aerie first, or name it by AERIE" >&2
  exit 1
fi

# llama.cpp's threads wait for each other at every op, and suffer most if other programs compute.
echo "load of this machine before: $(cut -d' ' -f1 /proc/loadavg 2>/dev/null || echo unknown)" >&2
results=$(mktemp)
trap 'rm -f "$results"' EXIT
for round in $(seq "$rounds"); do
  echo "round $round of $rounds" >&2
  ours=$("$aerie" bench "${model[@]}" --weights "$weights" -t "$threads" --draft none --rows 8,16 \
    -p 16 --seconds 0 --json -q)
  theirs=$("${llama[@]}" -m "$gguf" -t "$threads" -ngl 0 -p 8,16 -n 16 -r 3 -o json 2>/dev/null) ||
    { echo "rivals: ${llama[*]} -m $gguf failed" >&2; exit 1; }
  python3 -c 'import json, sys; print(json.dumps([json.loads(text) for text in sys.argv[1:]]))' \
    "$ours" "$theirs" >>"$results"
done

python3 - "$results" <<'PYTHON'
import json
import statistics
import sys

rounds = [json.loads(line) for line in open(sys.argv[1])]
first, peer = rounds[0][0], rounds[0][1][0]
ours_name = f"{first['model']}, {first['weights']}"
print(f"ours: {ours_name}; theirs: {peer['model_type']}, {peer['model_size'] / 1e6:.0f} MB, "
      f"llama.cpp {peer['build_number']}; {first['device_description']}")


def our_times(ours):
    passes = {entry["rows"]: entry["median_seconds"] for entry in ours["passes"]}
    return {"token": ours["plain"]["median_seconds"], "T(8)": passes[8], "T(16)": passes[16],
            "prompt(16)": ours["prefill"]["median_seconds"]}


def their_times(tests):
    times = {}
    for test in tests:
        seconds = statistics.median(test["samples_ns"]) * 1e-9
        if test["n_gen"]:
            times["token"] = seconds / test["n_gen"]
        else:
            times[f"T({test['n_prompt']})"] = seconds
    times["prompt(16)"] = times["T(16)"]
    return times


pairs = [(our_times(ours), their_times(theirs)) for ours, theirs in rounds]
for number, ((ours, theirs), (result, _)) in enumerate(zip(pairs, rounds), 1):
    cells = "; ".join(f"{what} {ours[what] * 1e3:.2f} against {theirs[what] * 1e3:.2f} ms" for what in ours)
    print(f"round {number}: read {result['read_gb_per_s']:.1f} GB/s; {cells}")
for what in pairs[0][0]:
    ratios = sorted(theirs[what] / ours[what] for ours, theirs in pairs)
    print(f"{what:10} {statistics.median(ratios):6.2f} x faster than llama.cpp ({ratios[0]:.2f}-{ratios[-1]:.2f})")
PYTHON
