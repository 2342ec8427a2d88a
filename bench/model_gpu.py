"""What a token and a cycle take on GPUs that are not here, from the code that a compiler made for them.

  for t in q4_0 q8_0 f16; do kernel_code_test.py PROGRAM DRIVER --families navi31 --json $t.json llama-2-7b 1 $t; done
  model_gpu.py --join NAME FIGURES.json q4_0.json q8_0.json f16.json
  model_gpu.py FIGURES.json... [--check] [--parts] [--devices NAME,...]

FIGURES are of a layer of Llama-2-7B: each kernel's loops (loads, trips to memory, to shared memory, barriers,
instructions), registers and shared memory, and the dispatches of a pass. All are of AMD's compiler for RDNA 3, for
want of the others'. How often a loop turns follows from what it must read. A dispatch takes the longest of

  memory    what it must read, at kShare of the device's peak
  cache     what all its lanes load, at the rate of the second cache
  issue     its instructions, at one a unit and clock for each of its issue ports
  latency   rounds of workgroups that fit at once, times the waits of one: Little's law

and a start and a barrier. Nothing is fitted to a kernel; the constants of devices are vendors' or measured by others
as named beside them, and stand since the first commit of this file. --check compares what c849204 gives with the
predictions that a reader of its machine code made then (REVIEW)."""

import argparse
import json
import math
import sys
from pathlib import Path

# Llama-2-7B.
HIDDEN, INTERMEDIATE, HEADS, HEAD_DIM, LAYERS, VOCAB = 4096, 11008, 32, 128, 32, 32000
BLOCK_BYTES = {"q4_0": 18 / 32, "q8_0": 34 / 32, "f16": 2}  # of an element
LOADS_OF_BLOCK = {"q4_0": (2, 32), "q8_0": (3, 32), "f16": (1, 8)}  # loads of a lane, elements they give
CONTEXT = 100  # positions
K_SHARE = 0.90  # of the peak that a streaming kernel gets: copies by vendors' own tools
NESTED = 8  # turns of a loop inside another that loads nothing: invocations that share a row


class Device:
    """units: SMs, WGPs, Xe cores. Registers are words of a unit. Latencies in ns, loaded; rates in GB/s; ports:
    instructions for 64 lanes that a unit issues a clock."""

    def __init__(self, units, ghz, threads, registers, shared, memory, cache, far, near, local, barrier, start, ports):
        self.units, self.ghz, self.threads, self.registers, self.shared = units, ghz, threads, registers, shared
        self.memory, self.cache, self.far, self.near, self.local = memory, cache, far, near, local
        self.barrier, self.start, self.ports = barrier, start, ports


# Units, clocks, registers, shared memory and peaks: vendors' white papers. Latencies and rates of caches: pointer
# chases published by Chips and Cheese (4090, 7900 XTX, A770, B580, 780M), times 1.5 under load. A start with its
# barrier: what REVIEW's source gives 290 of them, 0.6 ms on NVIDIA and 1.0 on AMD; for Intel a guess.
DEVICES = {
    "RTX 4090": Device(128, 2.5, 1536, 65536, 100 << 10, 1008, 5000, 550, 280, 12, 30, 2000, 2),
    "RX 7900 XTX": Device(48, 2.4, 4096, 196608, 128 << 10, 960, 3500, 600, 300, 30, 40, 3500, 4),
    "Arc A770": Device(32, 2.1, 2048, 131072, 128 << 10, 560, 1500, 900, 400, 50, 100, 5000, 4),
    "Arc B580": Device(20, 2.7, 2048, 131072, 128 << 10, 456, 1500, 700, 300, 40, 60, 5000, 4),
    "Ryzen 780M": Device(6, 2.7, 4096, 131072, 128 << 10, 90, 700, 700, 250, 30, 40, 3500, 4),
}

# Milliseconds of a token, and T(8), T(16), T(60) by it, as section 2.2 of the reading of c849204 predicted; where that
# gave a range, its middle.
REVIEW = {
    ("RTX 4090", "q4_0"): (7, 1.2, 1.5, 2.1), ("RTX 4090", "q8_0"): (10.5, 1.1, 1.4, 1.6),
    ("RTX 4090", "f16"): (18.5, 1.05, 1.3, 1.8), ("RX 7900 XTX", "q4_0"): (9.5, 1.3, 1.9, 2.9),
    ("RX 7900 XTX", "q8_0"): (13, 1.2, 1.7, 2.6), ("RX 7900 XTX", "f16"): (60, 1.0, 1.2, 3),
    ("Arc A770", "q4_0"): (30, 1.5, 4.5, 10), ("Arc A770", "q8_0"): (35, 1.5, 4.5, 10),
    ("Ryzen 780M", "q4_0"): (60, 1.3, 1.7, 3.3), ("Ryzen 780M", "q8_0"): (100, 1.2, 1.6, 3),
    ("Ryzen 780M", "f16"): (270, 1, 1.2, 3),
}
ROWS = (1, 8, 16, 60)


def needs_of(name, grid, rows, weight, inner):
    """What a workgroup reads in its loops, by binding, all loops together; and the bytes that the dispatch must get from
    memory."""
    shader = name.split()[0]
    if "matmul" in shader:
        blocks = inner / LOADS_OF_BLOCK[weight][1] * 32
        strip = inner * 32 * BLOCK_BYTES[weight]
        return {2: ("blocks", blocks)}, grid[0] * strip
    if shader == "rms_norm":
        return {1: ("bytes", 2 * HIDDEN * 4)}, 0  # to sum and to scale
    if shader == "attention":
        chunks = math.ceil(CONTEXT / 64)
        share = max(1, chunks / max(1, grid[2]))
        each = share * 64 * HEAD_DIM * 2
        return {4: ("bytes", each), 5: ("bytes", each)}, 2 * HEADS * CONTEXT * HEAD_DIM * 2
    return {}, 0


def turns_of(loop, kernel, needs, weight):
    """How often a workgroup goes round, where what it reads there tells."""
    turns = 0
    for binding, (kind, amount) in needs.items():
        loads = loop["loads_of"].get(str(binding), 0)
        if not loads:
            continue
        if kind == "blocks":
            each = loads / LOADS_OF_BLOCK[weight][0] * kernel["invocations"]
        else:
            each = loop["load_bytes"][str(binding)] * kernel["invocations"]
        sharing = sum(str(binding) in other["loads_of"] for other in kernel["loops"])  # one of them, or each a part
        turns = max(turns, math.ceil(amount / each / sharing))
    return turns


class Work:
    """Of one workgroup: waits in ns and instructions of a wave."""

    def __init__(self, device):
        self.device, self.wait, self.instructions, self.loaded = device, 0, 0, 0

    def add(self, part, turns, far, invocations):
        d = self.device
        first = min(1, part["trips"]) if far else 0
        trip = first * d.far + (part["trips"] - first) * d.near + part["shared_trips"] * d.local
        self.wait += turns * (trip + part["barriers"] * d.barrier)
        self.instructions += turns * part["instructions"]
        self.loaded += turns * sum(part["load_bytes"].values()) * invocations


def dispatch_ns(device, name, kernel, grid, rows, weight, inner):
    groups = grid[0] * grid[1] * grid[2]
    if name.startswith("attention "):
        groups = min(groups, grid[0] * grid[1] * math.ceil(CONTEXT / 64))  # the others find nothing to do
    needs, must = needs_of(name, grid, rows, weight, inner)
    work, around = Work(device), []
    work.add(kernel["straight"], 1, False, kernel["invocations"])
    for loop in kernel["loops"]:
        around = around[:loop["depth"]]
        turns = turns_of(loop, kernel, needs, weight)
        outer = around[-1] if around else 1
        if not turns:
            turns = outer * (NESTED if around and not loop["loads"] and loop["shared_loads"] else 1)
        around.append(turns)
        far = any(str(b) in loop["loads_of"] for b in needs) and must > 0
        work.add(loop, turns, far, kernel["invocations"])
    waves = math.ceil(kernel["invocations"] / 64)
    fits = min(device.threads // kernel["invocations"],
               device.registers // max(1, kernel["registers"] * kernel["invocations"]),
               device.shared // max(1, kernel["shared"]))
    at_once = max(1, fits) * device.units
    issue = work.instructions / device.ghz
    latency = (work.wait + issue) * max(1, groups / at_once)
    times = {
        "memory": must / (device.memory * K_SHARE),
        "cache": groups * work.loaded / 64 / device.cache if "matmul" not in name else must * max(1, grid[1]) / device.cache,
        "issue": groups * waves * issue / (min(groups, device.units) * device.ports),
        "latency": latency,
    }
    return max(times.values()), max(times, key=times.get)


def layer_and_rest(commands):
    """The dispatches of the only layer, and the others: a layer goes from the first norm to the last one."""
    norms = [i for i, c in enumerate(commands) if c[0].startswith("rms_norm")]
    return commands[norms[0]:norms[-1]], commands[:norms[0]] + commands[norms[-1]:]


def commands_ns(device, kernels, commands, weight, rows, parts, times):
    """Once; `times` is for the parts."""
    total, before = 0, ""
    for place, (name, x, y, z, waits) in enumerate(commands):
        inner = HIDDEN
        if "matmul" in name:
            rest = any("matmul" in c[0] for c in commands[place + 1:])
            inner = INTERMEDIATE if "swiglu" in before or (times > 1 and not rest) else HIDDEN
        ns, bound = dispatch_ns(device, name, kernels[name], (x, y, z), rows, weight, inner)
        ns += device.start if waits else device.start / 4
        total += ns
        before = name
        bounds = parts.setdefault(name.split()[0], {})
        bounds[bound] = bounds.get(bound, 0) + times * ns / 1e6
    return total


def token_ms(device, figures, weight, rows, parts=None, name=None):
    """Of a pass with logits of every row."""
    kernels, parts = figures["kernels"], {} if parts is None else parts
    layer, rest = layer_and_rest(figures["passes"][weight][name or str(rows)])
    matmul = next(c[0] for c in layer if "matmul" in c[0])
    rest = [[matmul, *c[1:]] if "matmul" in c[0] else c for c in rest]
    return (LAYERS * commands_ns(device, kernels, layer, weight, rows, parts, LAYERS)
            + commands_ns(device, kernels, rest, weight, rows, parts, 1)) / 1e6


def cycle_ms(device, figures, weight):
    """What the device does in a cycle of EAGLE-2 with trees of 60 nodes, six levels of ten; the host comes on top."""
    drafting = commands_ns(device, figures["kernels"], figures["passes"][weight]["propose"], weight, 10, {}, 1)
    return drafting / 1e6 + token_ms(device, figures, weight, 60, name="verify")


def join(commit, to, files):
    """One file of what kernel_code_test.py keeps of each type."""
    def part(p):
        return {a: p[a] for a in ("depth", "instructions", "loads", "loads_of", "load_bytes", "trips", "shared_loads",
                                  "shared_trips", "barriers")}

    kernels, passes = {}, {}
    for file in files:
        found = json.loads(Path(file).read_text())
        (family, named), = found["passes"].items()
        weight = next(iter(named)).split()[1]
        wanted = {**{str(rows): f"read {rows}" for rows in ROWS}, "propose": "propose eagle2", "verify": "verify eagle2"}
        passes[weight] = {key: next(c for n, c in named.items() if n.endswith(" " + last)) for key, last in wanted.items()}
        for commands in passes[weight].values():
            for name, *_ in commands:
                k = found["kernels"][family][name]
                kernels[name] = {**{a: k[a] for a in ("invocations", "registers", "shared")},
                                 "straight": part(k["straight"]), "loops": [part(loop) for loop in k["loops"]]}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(kernel)}" for name, kernel in sorted(kernels.items()))
    Path(to).write_text(f'{{"commit": {json.dumps(commit)},\n "passes": {json.dumps(passes)},\n "kernels": {{\n{lines}}}}}\n')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("figures", nargs="+")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--devices", default="RTX 4090,RX 7900 XTX,Arc B580,Ryzen 780M")
    parser.add_argument("--join", metavar="NAME")
    options = parser.parse_args()
    if options.join:
        return join(options.join, options.figures[0], options.figures[1:])
    missed = 0
    for path in options.figures:
        figures = json.loads(Path(path).read_text())
        print(f"{figures['commit']}:  T(1) ms (share of the peak)  T(8)  T(16)  T(60) by T(1)")
        for name in (dict.fromkeys(d for d, _ in REVIEW) if options.check else options.devices.split(",")):
            for weight in BLOCK_BYTES:
                parts = {}
                times = [token_ms(DEVICES[name], figures, weight, rows, parts if rows == 1 else None) for rows in ROWS]
                got = (times[0], *(t / times[0] for t in times[1:]))
                floor = BLOCK_BYTES[weight] * (LAYERS * (4 * HIDDEN ** 2 + 3 * HIDDEN * INTERMEDIATE) + VOCAB * HIDDEN)
                share = floor / DEVICES[name].memory / 1e6 / times[0]
                line = f"{name:12} {weight:5} {got[0]:7.1f} ({share:4.0%})" + "".join(f"  {r:5.2f}" for r in got[1:])
                if "propose" in figures["passes"][weight]:
                    line += f"   cycle {cycle_ms(DEVICES[name], figures, weight):6.1f} ms"
                if options.check and (name, weight) in REVIEW:
                    off = [g / w - 1 for g, w in zip(got, REVIEW[name, weight])]
                    missed += sum(abs(o) > 0.1 for o in off)
                    line += "   off by" + "".join(f" {o:+5.0%}" for o in off)
                print(line)
                if options.parts:
                    for part, bounds in sorted(parts.items(), key=lambda item: -sum(item[1].values())):
                        print(f"      {part:32} {sum(bounds.values()):6.2f} ms  "
                              + ", ".join(f"{b} {t:.2f}" for b, t in bounds.items()))
    if options.check:
        print(f"{missed} figures of {4 * len(REVIEW)} are off by more than 10 %")
    return bool(options.check and missed)


if __name__ == "__main__":
    sys.exit(main())
