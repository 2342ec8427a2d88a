"""Checks every CUDA kernel, as nvcc makes it, against budgets. Needs no GPU.

code_test.py NVCC ROOT [--write] ARCHITECTURE...

No kernel may spill a register on any of the architectures, or take more shared memory beside the ring of its launch
than the ring leaves on Turing, where a block has 64 KB, or have more than code_budgets.txt allows of

  sm_90   its registers
  most    the most registers of any architecture
  shared  bytes of shared memory
  trips   in an iteration of a loop: trips to memory that a warp waits for one after the other (on sm_90, and on sm_89
          if it is among the architectures); copies to shared memory count if they are not started far enough ahead
  step    the same for the loop with most of the matrix instructions

A kernel with matrix instructions must have a loop of them, and attention a loop that loads; otherwise the code was read
wrongly, and no trips were counted. --write sets the budgets to what the kernels take now."""

import argparse
import re
import shutil
import sys
from pathlib import Path

import compiled
import sass

SKIPPED = 77  # CTest reads this status as a skip
BUDGETS = Path(__file__).with_name("code_budgets.txt")
COLUMNS = ["sm_90", "most", "shared", "trips", "step"]
RINGS = {"matmul.cu", "matmul_quant.cu", "expert_matmul.cu"}  # the files with kernels that have a ring
COPY_CLOCKS = 1000  # what a copy from memory takes under load


def trips(loop):
    return sass.trips_of(loop.path) + round(sass.copies_awaited(loop.path, COPY_CLOCKS))


def loading(kernel):
    return [loop for loop in sass.loops_of(kernel.instructions) if not loop.path or loop.count("LDG", "LDGSTS")]


def product_of(kernel):
    """The loops of a kernel's product: one, the loop with most of the matrix instructions, or none."""
    loops = [loop for loop in sass.loops_of(kernel.instructions) if loop.path and loop.count(*sass.MATRICES)]
    return [max(loops, key=lambda loop: (loop.count(*sass.MATRICES), loop.depth))] if loops else []


def faults_of_code(kernel):
    """Yields the loops of a kernel that cannot be judged although its code was read."""
    loops = sass.loops_of(kernel.instructions)
    for loop in loops:
        if not loop.path:
            yield f"the loop at {16 * loop.begin:#x} cannot be followed"
    if any(i.op in sass.MATRICES for i in kernel.instructions) and not any(l.count(*sass.MATRICES) for l in loops):
        yield "no loop with its matrix instructions was found"


def figures_of(found):
    """{(source, name): [a figure for each of COLUMNS]}; None where the architectures of this run do not give it."""
    figures = {}
    for architecture, kernels in found.items():
        for key, kernel in kernels.items():
            own = figures.setdefault(key, [None, 0, 0, None, None])
            own[1] = max(own[1], kernel.registers)
            own[2] = max(own[2], kernel.shared)
            if architecture == "90":
                own[0] = kernel.registers
            if kernel.instructions and architecture in ("89", "90"):
                own[3] = max([own[3] or 0] + [trips(loop) for loop in loading(kernel) if loop.path])
                own[4] = max([own[4] or 0] + [trips(loop) for loop in product_of(kernel)])
    return figures


def read_budgets():
    lines = [line.split(None, len(COLUMNS) + 1) for line in BUDGETS.read_text().splitlines() if line[:1] != "#"]
    return {(source, name): list(map(int, numbers)) for *numbers, source, name in lines}


def write_budgets(figures, architectures):
    before = read_budgets() if BUDGETS.exists() else {}
    lines = ["# What a kernel may take at most; code_test.py says what of, and writes this.",
             "#" + " ".join(f"{column:>6}" for column in COLUMNS) + "  source, kernel"]
    for key, own in sorted(figures.items()):
        if len(architectures) == 1 and key in before:  # what others take is not known now
            own = [own[0], max(own[1], before[key][1]), *own[2:]]
        lines.append(" " + " ".join(f"{n or 0:>6}" for n in own) + "  " + " ".join(key))
    BUDGETS.write_text("\n".join(lines) + "\n")


def beside_ring(root):
    """Bytes of shared memory that a matmul's block may have beside its ring: kBesideRingBytes of stream.cuh."""
    text = Path(root, "backends/cuda/device/stream.cuh").read_text()
    return int(re.search(r"kBesideRingBytes = (\d+);", text).group(1))


def faults_of_rings(figures, most):
    """Yields matmuls with more than `most` bytes of shared memory beside their ring. Their launches would exceed what a
    block has on Turing, and fail there alone, with "invalid argument". Kernels that prepare a row assert the same at
    compile time."""
    beside = [(key, own[2]) for key, own in figures.items() if key[0] in RINGS and re.match(r"(multiply|gated|expert_(float|quant))_kernel", key[1])]
    yield from (f"{', '.join(key)}: {shared} bytes beside its ring, and {most} are reckoned with" for key, shared in beside if shared > most)
    if not beside:
        yield "no kernel with a ring was found"


def faults_of(found, figures, budgets):
    for architecture, kernels in found.items():
        for (source, name), kernel in kernels.items():
            where = f"sm_{architecture}, {source}, {name}"
            if kernel.spilled:
                yield f"{where}: {kernel.spilled} bytes are spilled"
            yield from (f"{where}: {fault}" for fault in faults_of_code(kernel))
    for key, own in figures.items():
        for column, has, most in zip(COLUMNS, own, budgets.get(key, [])):
            if has is not None and has > most:
                yield f"{', '.join(key)}: {column}: {has}, and the budget is {most}"
    yield from (f"{', '.join(key)}: has no budget" for key in figures if key not in budgets)
    yield from (f"{', '.join(key)}: a budget for no kernel" for key in budgets if key not in figures)


def faults_of_reading(found):
    """Yields loops that every architecture must have and that were not found, so the code was read wrongly."""
    for architecture, kernels in found.items():
        read = [k for k in kernels.values() if k.instructions]
        if architecture not in compiled.READABLE:
            continue
        if not any(loop.count(*sass.MATRICES) for k in read for loop in sass.loops_of(k.instructions)):
            yield f"sm_{architecture}: no loop of matrix instructions was found"
        if not any(loading(k) for k in read if k.source == "attention.cu"):
            yield f"sm_{architecture}: no loop of attention that loads was found"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nvcc")
    parser.add_argument("root")
    parser.add_argument("architectures", nargs="+")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if not shutil.which(options.nvcc):
        print("SKIPPED: no nvcc here")
        sys.exit(SKIPPED)
    found = compiled.compile_all(options.nvcc, options.root, options.architectures)
    figures = figures_of(found)
    if options.write:
        write_budgets(figures, options.architectures)
    faults = [*faults_of(found, figures, read_budgets()), *faults_of_rings(figures, beside_ring(options.root)), *faults_of_reading(found)]
    print("registers of kernel" + 23 * " " + "".join(f"{'sm_' + a:>8}" for a in found) + "  shared   trips    step")
    for key, own in figures.items():
        registers = "".join(f"{kernels[key].registers:8}" for kernels in found.values())
        print(f"{key[1]:42}{registers}{own[2]:8}" + "".join(f"{'' if n is None else n:8}" for n in own[3:]))
    print(f"{len(figures)} kernels", *faults, sep="\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
