"""Tests sass.py and code_test.py on planted.cu: loops whose trips are known are read so, and planted faults are found.

sass_test.py NVCC ROOT"""

import dataclasses
import shutil
import sys
from pathlib import Path

import code_test
import compiled
import sass

# By kernel: the loads that a turn waits for one behind the other, and the share of a wait for copies that it does not
# hide.
WANT = {"chased_kernel": (3, 0), "batched_kernel": (1, 0), "ahead_kernel": (1, 0), "ring_kernel": (0, 0), "late_kernel": (0, 1)}


def faults_of_loops(kernels):
    for name, (trips, awaited) in WANT.items():
        loading = code_test.loading(kernels[name])
        got = [(sass.trips_of(loop.path), round(sass.copies_awaited(loop.path, 400))) for loop in loading]
        if got[-1:] != [(trips, awaited)]:
            yield f"{name}: {got}, and {trips, awaited} was written"
    hidden = code_test.loading(kernels["ahead_kernel"])[-1].path
    if sass.clocks_of(hidden, 100) != sass.clocks_of(hidden, 0):
        yield "ahead_kernel: a short trip is not hidden"
    if not kernels["spilling_kernel"].spilled:
        yield "spilling_kernel: no spill was seen"


def faults_of_budgets(found):
    """Yields the planted faults that code_test.py does not report, or not in the expected words."""
    figures = code_test.figures_of(found)
    budgets = {key: [n or 0 for n in own] for key, own in figures.items()}
    key = next(key for key in figures if key[1] == "chased_kernel")
    cases = [(dict(budgets), "bytes are spilled"), ({**budgets, key: [0, *budgets[key][1:]]}, "sm_90: "),
             ({**budgets, key: [*budgets[key][:2], -1, 3]}, "shared: "), ({**budgets, key: [*budgets[key][:3], 2]}, "trips: 3"),
             ({k: b for k, b in budgets.items() if k != key}, "has no budget"), ({**budgets, ("a", "b"): [1]}, "for no kernel")]
    for planted, words in cases:
        if not any(words in fault for fault in code_test.faults_of(found, figures, planted)):
            yield f"not reported: {words}"
    full = {("matmul.cu", "multiply_kernel<F16, 1>"): [0, 0, 2065, 0, 0], ("matmul.cu", "gated_kernel<F16, 1>"): [0, 0, 2064, 0, 0]}
    if len(list(code_test.faults_of_rings(full, 2064))) != 1 or not list(code_test.faults_of_rings({}, 2064)):
        yield "not reported: no room for a ring, no ring"
    matrix = next(k for k in found["90"].values() if k.name == "chased_kernel")
    matrix = dataclasses.replace(matrix, instructions=[dataclasses.replace(matrix.instructions[0], op="HMMA"), *matrix.instructions[1:]])
    if not list(code_test.faults_of_code(matrix)):
        yield "not reported: matrix instructions outside of loops"
    chased = found["90"][key]
    within = code_test.loading(chased)[-1].begin
    product = [dataclasses.replace(i, op="HMMA") if n == within else i for n, i in enumerate(chased.instructions)]
    figures = code_test.figures_of({"90": {key: dataclasses.replace(chased, instructions=product)}})
    if figures[key][4] != 3:
        yield f"a product that waits for three trips: {figures[key]}"
    if len(list(code_test.faults_of_reading(found))) != 2 * len(found):
        yield "not reported: no loops of matmuls and attention"


def main():
    nvcc, root = sys.argv[1:]
    if not shutil.which(nvcc):
        print("SKIPPED: no nvcc here")
        sys.exit(code_test.SKIPPED)
    faults, found = [], {}
    for architecture in ("89", "90"):
        kernels = compiled.compile_one(nvcc, root, str(Path(__file__).with_name("planted.cu")), architecture)
        found[architecture] = {(k.source, k.name): k for k in kernels}
        faults += [f"sm_{architecture}: {f}" for f in faults_of_loops({k.name: k for k in kernels})]
    faults += faults_of_budgets(found)
    print(*faults, sep="\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
