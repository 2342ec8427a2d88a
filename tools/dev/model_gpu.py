"""Predicts the time of a token and of a cycle on GPUs that are not here, from the code that a compiler made for them.

  model_gpu.py FIGURES.json... [--parts] [--devices NAME,...]
  model_gpu.py --code PROGRAM DRIVER [--keep FIGURES.json]
  model_gpu.py --cuda NVCC ROOT COMMIT [--keep FIGURES.json]

A FIGURES file describes the kernels of a layer of Llama-2-7B: each kernel's loops (loads, trips to memory and the work
between a load and the wait for it, trips to shared memory, barriers, matrix instructions, all instructions), its
registers and its shared memory; and the dispatches of a pass. A trip is a group of loads that are waited for together.
All figures of Vulkan are from AMD's compiler for RDNA 3, since the other vendors' compilers are not here. --code makes
them anew: PROGRAM is kernel_code, DRIVER the folder of an unpacked Mesa or "" for the system's
(tests/vulkan/kernel_code_test.py). Figures of CUDA are read from nvcc's code and used by model_gpu_cuda.py; COMMIT,
"now" or an earlier one, says how the kernels are launched.

A dispatch has two times. One is the time that a workgroup waits: for the instructions of a lone subgroup, for trips to
memory less the work between load and wait, for trips to shared memory and for barriers, one after the other, times the
rounds until all workgroups have been resident. The other is that of the busiest of memory, L2 cache, instruction slots
and matrix units. A dispatch takes the root of the sum of their squares, since neither hides all of the other, and a
gap, which is four times as long if it waits for the dispatch before it. The constants below are the same for all
kernels and all weight types, before and after a change of the kernels. model_gpu_test.py says which figures of an
estimate of c849204, made by hand, they reproduce."""

import argparse
import dataclasses
import json
import math
import sys
from pathlib import Path

import model_gpu_cuda
import model_gpu_kernels as kernels_of
from model_gpu_kernels import HIDDEN, LAST, LAYERS, OF_HEAD, OF_LAYER, WEIGHT, Pass


@dataclasses.dataclass
class Device:
    units: int  # SMs, WGPs, Xe cores
    ghz: float
    lanes: int  # per subgroup
    threads: int  # per unit, as are registers and shared memory
    registers: int  # words; 0: the counts of AMD's compiler do not apply to this device
    shared: int  # bytes
    peak: float  # of memory in GB/s, and the share of it that a kernel reaches
    share: float
    cache: float  # the second cache, GB/s
    far: float  # ns of an access to memory, to the second cache, to the first one, to shared memory, and of a barrier
    near: float
    first: float
    local: float
    barrier: float
    pace: float  # clocks per instruction of a single subgroup
    ports: float  # instructions for 64 lanes that a unit issues per clock
    half_matrix: float  # clocks of a unit for 16 x 16 x 16, f16 and int8
    int_matrix: float
    gap: float  # ns between a dispatch and a dependent one
    predicates: bool  # its compiler issues guarded loads together, and does not wait for those of the next iteration


# Units, clocks, threads, registers, shared memory, peaks and matrix rates are from vendors' white papers. RTX 4090:
# share, cache, near, first and matrices are those of the CUDA estimate by hand of the same day (README.md; 955
# GB/s, 5000 GB/s, 280 and 40 clocks). Gaps: that estimate's 0.6 ms (NVIDIA) and 1.0 ms (AMD) for 290 barriers. Its
# "~0.2 us" for an access to AMD's second cache is the basis of near. Far, first, local, barrier, pace: between once and
# twice what the pointer chases published by Chips and Cheese give without load, chosen so that most of the estimate's
# figures for c849204 come out; AMD's two devices share pace, barrier and local. A770: its driver has neither matrices
# (int_matrix is a product by instructions) nor fast starts. B580: the A770's values, with matrices and the halved start
# that its driver is known for; a guess.
DEVICES = {
    "RTX 4090": Device(128, 2.5, 32, 1536, 0, 99 << 10, 1008, 0.947, 5000, 700, 112, 16, 10, 20, 1.5, 2, 16, 4, 2070,
                       True),
    "RX 7900 XTX": Device(48, 2.4, 64, 4096, 196608, 128 << 10, 960, 0.85, 3500, 700, 160, 105, 15, 30, 2.5, 4, 8, 8,
                          3450, False),
    "Arc A770": Device(32, 2.1, 8, 1024, 0, 128 << 10, 560, 0.70, 1500, 1100, 400, 200, 55, 120, 4.5, 2, 125, 125, 11000,
                       False),
    "Arc B580": Device(20, 2.7, 16, 1024, 0, 128 << 10, 456, 0.85, 1500, 800, 250, 150, 40, 80, 4, 2, 8, 8, 5000, False),
    "Ryzen 780M": Device(6, 2.7, 64, 4096, 196608, 128 << 10, 90, 0.80, 700, 450, 80, 35, 15, 30, 2.5, 4, 8, 8, 3450,
                         False),
}
ROWS = (1, 8, 16, 60)
# The host's part of a cycle in us, as in the estimate of c849204 by hand (README.md): a submission, a wait that
# polls, a command that is recorded again, the tree. counts_test gives how many of each a cycle of EAGLE-2 has on a
# device with memory of its own.
HOST = {"submission": (20, 2), "wait": (10, 2), "copy": (2, 2), "recorded": (3, 15), "tree": (15, 1)}


class Dispatch:
    """A dispatch and its times in ns: `busy`, that of each resource; `waits`, that of its workgroups; `ns`, in all."""

    def __init__(self, device, name, kernel, grid, work, shape=(HIDDEN, 0), adds=False):
        self.device, self.name, self.kernel, self.work = device, name, kernel, work
        self.inner, self.adds = shape[0], adds
        self.matmul = kernels_of.is_matmul(name)
        columns = kernels_of.parts_of(name)[1][0] if self.matmul else 1
        rows = min(work.rows, columns * min(grid[:2])) if self.matmul else work.rows
        self.columns, self.own_rows = columns, min(rows, columns)
        blocks = kernels_of.ceil_div(rows, columns) if self.matmul else 1
        groups, items = kernels_of.working_groups(name, grid, work)
        must, cached = kernels_of.bytes_of(name, kernel, shape, blocks, groups, items, work)
        self.strip_bytes = must * blocks / groups
        slots = self.waits = loaded = 0
        parts = [(kernel["straight"], 1, 1, 1)]
        parts += [(loop, turns, share, items) for loop, (turns, share) in
                  zip(kernel["loops"], self.turns(device.lanes), strict=True)]
        # Subgroups share matrices, however many there are; these counts are for AMD's.
        matrices = sum(turns * items * loop["matrices"] for loop, (turns, _) in zip(kernel["loops"], self.turns(64)))
        for part, turns, share, times in parts:
            rounds = max(1, groups * share / self.resident())
            self.waits += rounds * turns * times * self.turn(part, turns)
            slots += turns * times * share * part["instructions"]
            loaded += turns * times * share * sum(part["load_bytes"].values())
        if not must:  # row ops: an element belongs to 16 bytes of which others are read, too
            cached = groups * loaded * kernel["invocations"] / 4
        idle = max(1, device.units / groups)
        each = idle * groups / device.units / device.ghz
        matrix = device.half_matrix if work.weight == "f16" else device.int_matrix
        self.busy = {
            "memory": must / device.peak / device.share,
            "cache": cached / device.cache,
            "slots": each * math.ceil(kernel["invocations"] / 64) * slots / device.ports,
            "matrices": each * kernel["invocations"] / 64 * matrices * matrix,
        }
        self.ns = math.hypot(self.waits, max(self.busy.values()))
        self.bound = max({**self.busy, "waits": self.waits}.items(), key=lambda item: item[1])[0]

    def turns(self, lanes):
        return kernels_of.turns_of(self.name, self.kernel, self.inner, self.work, lanes)

    def resident(self):
        d, k = self.device, self.kernel
        fits = min(32, d.threads // k["invocations"], d.shared // max(1, k["shared"]))
        if d.registers:
            fits = min(fits, d.registers // max(1, k["registers"] * k["invocations"]))
        return max(1, fits) * d.units

    def trips(self, part):
        """(trips, from_memory) of one iteration of `part`: how many, and whether some load the weight, from memory."""
        count, loads_of = part["trips"], part["loads_of"]
        straight = part is self.kernel["straight"]
        if self.matmul and (straight or WEIGHT not in loads_of):  # never a bias; a residual at times
            loads_of = {b: n for b, n in loads_of.items() if b in "12" or (b == "0" and self.adds)}
            count = math.ceil(count * sum(loads_of.values()) / max(1, part["loads"]))
        if self.device.predicates:
            count = min(count, len(loads_of))
        return count, self.matmul and not straight and WEIGHT in loads_of

    def cached_ns(self):
        """Time in ns of a trip to data that other workgroups have read already, which is in the L2 cache. In c849204's
        f16 kernels, the unused columns of a tile are copies of one row, and come from the L1 cache."""
        d = self.device
        if not (self.matmul and kernels_of.prepares_x(self.name, self.kernel)):
            return d.near
        own = self.own_rows / self.columns
        return d.near * own + d.first * (1 - own)

    def turn(self, part, turns):
        """Time in ns of one of the `turns` iterations of `part` by a workgroup that runs alone."""
        d = self.device
        pace = d.pace / d.ghz
        ns = part["instructions"] * pace + part["shared_trips"] * d.local + part["barriers"] * d.barrier
        work_ns = ns
        count, from_memory = self.trips(part)
        # As many as the bytes that must be read need; the other loads find lines that came with them.
        far = math.ceil(self.strip_bytes / turns / (self.kernel["invocations"] * 16) - 0.25) if from_memory else 0
        far = min(count, max(far, int(from_memory)))
        for i in range(count):
            instructions, shared, barriers, _ = part["ahead"][i] if i < len(part["ahead"]) else (0, 0, 0, [])
            hidden = instructions * pace + shared * d.local + barriers * d.barrier
            if d.predicates and i < far and "cooperative" in self.name:
                hidden = work_ns
            ns += max(0, (d.far if i < far else self.cached_ns()) - hidden)
        return ns


def commands_ns(device, kernels, commands, work, shapes, parts, times=1):
    """Time in ns of the dispatches `commands`, in their order, with the shapes of their matmuls. Adds to `parts`, by
    op, the ms of `times` such runs and what bounds the op."""
    total, before, shapes = 0, "", list(shapes)
    for name, x, y, z, waits in commands:
        label, shape, inner = name.split()[0], (HIDDEN, 0), HIDDEN
        adds = False
        if kernels_of.is_matmul(name):
            which, *shape = shapes.pop(0)
            label, adds = f"{label} {which}", which in ("o", "down")
        elif label == "halves" and before.endswith("gate_up"):
            shape = (kernels_of.INTERMEDIATE, 0)
        done = Dispatch(device, name, kernels[name], (x, y, z), work, tuple(shape), adds)
        gap = device.gap if waits else device.gap / 4
        total += done.ns + gap
        before = label
        ms, bounds = parts.get(label, (0, ""))
        parts[label] = (ms + times * (done.ns + gap) / 1e6, done.bound)
    return total


def pass_ms(device, figures, work, name=None, parts=None):
    """Time in ms of a pass with logits of every row. The figures hold one layer: its dispatches, from the first norm to
    before the last one, count LAYERS times."""
    kernels, parts = figures["kernels"], {} if parts is None else parts
    commands = figures["passes"][work.weight][name or str(work.rows)]
    norms = [i for i, c in enumerate(commands) if c[0].startswith("rms_norm")]
    first = next(i for i, c in enumerate(commands) if i == norms[0] or kernels_of.is_matmul(c[0]))
    layer, rest = commands[first:norms[-1]], commands[:first] + commands[norms[-1]:]
    matmul, x, y, *_ = [c for c in layer if kernels_of.is_matmul(c[0])][-1]

    def of_every_row(c):
        if not kernels_of.is_matmul(c[0]):
            return c
        return [matmul, min(x, y), max(c[1:3]), 1, 1] if x < y else [matmul, max(c[1:3]), min(x, y), 1, 1]

    return (LAYERS * commands_ns(device, kernels, layer, work, OF_LAYER, parts, LAYERS)
            + commands_ns(device, kernels, [of_every_row(c) for c in rest], work, LAST, parts)) / 1e6


def level_shapes(commands):
    """(name, inner, outputs) of each matmul of drafting: the root's LM head, then those of each level in turn."""
    count = sum(kernels_of.is_matmul(c[0]) for c in commands)
    level = OF_HEAD + OF_LAYER + LAST
    return (LAST + level * count)[:count]


def cycle_ms(device, figures, weight, context=100):
    """Time in ms of a cycle of EAGLE-2, with a tree of 60 nodes and six levels of ten, on the device and the host."""
    commands = figures["passes"][weight]["propose"]
    work = Pass(weight, 10, context, tree=True)
    drafting = commands_ns(device, figures["kernels"], commands, work, level_shapes(commands), {})
    verify = pass_ms(device, figures, Pass(weight, 60, context, tree=True), "verify")
    return drafting / 1e6 + verify + host_ms()


def host_ms():
    return sum(us * count for us, count in HOST.values()) / 1e3


def times_of(device, figures, weight, parts=None):
    """[ms of a pass of one row; the times of 8, 16 and 60 rows divided by it]."""
    ms = [pass_ms(device, figures, Pass(weight, rows), parts=parts if rows == 1 else None) for rows in ROWS]
    return [ms[0], *(m / ms[0] for m in ms[1:])]


def share_of_peak(device, weight, ms):
    weights = LAYERS * sum(k * n for _, k, n in OF_LAYER) + math.prod(LAST[0][1:])
    return weights * kernels_of.BLOCK_BYTES[weight] / device.peak / 1e6 / ms


def part_of(p):
    return {a: p[a] for a in ("depth", "instructions", "loads", "loads_of", "load_bytes", "trips", "ahead", "shared_loads",
                              "shared_trips", "barriers", "matrices")}


def figures_of_code(program, driver, commit="now"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/vulkan"))
    import kernel_code_test

    kernels, passes = {}, {}
    for weight in kernels_of.BLOCK_BYTES:
        found, named = kernel_code_test.look(program, driver, "navi31", ["llama-2-7b", "1", weight])
        wanted = {**{str(rows): f"read {rows}" for rows in ROWS}, "propose": "propose eagle2", "verify": "verify eagle2"}
        passes[weight] = {key: next(c for n, c in named.items() if n.endswith(" " + last)) for key, last in wanted.items()}
        for name, k in json.loads(json.dumps(found)).items():  # keys become strings, as in a file
            kernels[name] = {**{a: k[a] for a in ("invocations", "registers", "shared")},
                             "straight": part_of(k["straight"]), "loops": [part_of(loop) for loop in k["loops"]]}
    return {"commit": commit, "passes": passes, "kernels": kernels}


def keep(figures, to):
    lines = ",\n".join(f"  {json.dumps(n)}: {json.dumps(k)}" for n, k in sorted(figures["kernels"].items()))
    head = f'{{"commit": {json.dumps(figures["commit"])},\n "passes": {json.dumps(figures["passes"])},\n'
    Path(to).write_text(f'{head} "kernels": {{\n{lines}}}}}\n')


def print_table(figures, names, with_parts):
    print(f"{figures['commit']}:  T(1) ms (of the peak)  T(8)  T(16)  T(60) by T(1); host's part of a cycle {host_ms():.2f} ms")
    for name in names:
        for weight in kernels_of.BLOCK_BYTES:
            parts = {}
            ms, *ratios = times_of(DEVICES[name], figures, weight, parts)
            line = f"{name:12} {weight:5} {ms:7.1f} ({share_of_peak(DEVICES[name], weight, ms):4.0%})"
            line += "".join(f"  {r:5.2f}" for r in ratios)
            if "verify" in figures["passes"][weight]:
                short, long = (pass_ms(DEVICES[name], figures, Pass(weight, 60, c, tree=True), "verify") for c in (256, 4096))
                line += f"   cycle {cycle_ms(DEVICES[name], figures, weight):6.1f} ms   verify at 4k by 256 {long / short:4.2f}"
            print(line)
            for part, (took, bound) in sorted(parts.items(), key=lambda item: -item[1][0]) if with_parts else []:
                print(f"      {part:34} {took:6.2f} ms  {bound}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("figures", nargs="*")
    parser.add_argument("--code", nargs=2, metavar=("PROGRAM", "DRIVER"))
    parser.add_argument("--cuda", nargs=3, metavar=("NVCC", "ROOT", "COMMIT"))
    parser.add_argument("--keep", metavar="FIGURES")
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--devices", default="RTX 4090,RX 7900 XTX,Arc B580,Ryzen 780M")
    options = parser.parse_args()
    all_figures = [json.loads(Path(path).read_text()) for path in options.figures]
    if options.code:
        all_figures.append(figures_of_code(*options.code))
        if options.keep:
            keep(all_figures[-1], options.keep)
    if options.cuda:
        all_figures.append(model_gpu_cuda.figures_of_code(*options.cuda))
        if options.keep:
            model_gpu_cuda.keep(all_figures[-1], options.keep)
    for figures in all_figures:
        if "cuda" in figures:
            model_gpu_cuda.print_table(figures)
        else:
            print_table(figures, options.devices.split(","), options.parts)


if __name__ == "__main__":
    main()
