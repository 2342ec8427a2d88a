"""Checks every kernel that aerie uses, as AMD's compiler makes it for GPUs that are not here, against budgets.

kernel_code_test.py PROGRAM DRIVER [--write] [PROGRAM'S ARGUMENT...]

PROGRAM is kernel_code, DRIVER the folder of an unpacked Mesa or "" for the system's. No kernel may spill a register,
use scratch memory or fuse operations, or have more than kernel_budgets.txt allows of

  registers  vector registers, the most of any family
  shared     bytes of shared memory
  waits      in an iteration of a loop that loads: waits for all loads, without those of nested loops
  trips      in such an iteration: runs of loads with a wait between them, so 1 if all are issued before the first wait
  serial     the same for loads from shared memory

--write sets the budgets to what the kernels take now."""

import argparse
import glob
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import isa

FAMILIES = ["navi31", "navi21", "gfx1201", "navi10", "vega10"]
BUDGETS = Path(__file__).with_name("kernel_budgets.txt")
COLUMNS = ["registers", "shared", "waits", "trips", "serial"]
# Shaders that are not compiled here: those for drivers that run on a CPU, or for devices that are poorer than any of
# these. One type of the shaders for experts is compiled, since they differ from the others only in what they write.
ELSEWHERE = re.compile(r"_fetch$|^expert_matmul|^matmul_(f16|[qi]\w*)(_normed)?$")


def is_debian_12():
    release = Path("/etc/os-release")
    return release.exists() and "VERSION_CODENAME=bookworm" in release.read_text()


def missing(reason):
    """Ends the program because AMD's compiler cannot be used: as a failure on Debian 12, whose Mesa is known to work,
    as skipped elsewhere."""
    if is_debian_12():
        sys.exit(f"no compiler for AMD's GPUs: {reason}; scripts/setup.sh --tests fetches one")
    print(f"SKIPPED: no compiler for AMD's GPUs: {reason}")
    sys.exit(77)


def drivers(folder):
    return glob.glob(f"{folder}/usr/share/vulkan/icd.d/radeon_icd*.json") or \
        glob.glob("/usr/share/vulkan/icd.d/radeon_icd*.json")


def run(command, driver, family):
    env = dict(os.environ, RADV_FORCE_FAMILY=family, VK_DRIVER_FILES=driver, VK_ICD_FILENAMES=driver,
               MESA_SHADER_CACHE_DISABLE="true", RADV_DEBUG="nocache")
    env.pop("VK_ADD_DRIVER_FILES", None)
    libraries = glob.glob(f"{Path(driver).parents[3]}/lib/*-linux-gnu*")
    env["LD_LIBRARY_PATH"] = ":".join(filter(None, [env.get("LD_LIBRARY_PATH"), *libraries]))
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()] if done.returncode == 0 else []
    return done, lines


def figures_of(kernel):
    """The figures of a kernel, from the driver's statistics and from its machine code."""
    said, loops = kernel["statistics"], isa.loops_of(kernel["code"])
    straight = isa.straight_of(kernel["code"])
    figures = {
        "subgroup": kernel["subgroup"],
        "invocations": kernel["invocations"],
        "registers": int(said["VGPRs"]),
        "shared": int(said["LDS size"]),
        "subgroups": int(said["Subgroups per SIMD"]),
        "scratch": int(said["Scratch size"]),
        "spilled": int(said["Spilled SGPRs"] + said["Spilled VGPRs"]),
        "instructions": int(said["Instructions"]),
        "fused": isa.fused_of(kernel["code"]),
        "straight": vars(straight),
        "loops": [vars(loop) for loop in loops],
    }
    loading = [loop for loop in loops if loop.loads]
    figures["waits"] = max((loop.full_waits for loop in loading), default=0)
    figures["trips"] = max((loop.trips for loop in loading), default=0)
    figures["serial"] = max((loop.shared_trips for loop in loading), default=0)
    return figures


def kernels_of(lines):
    return {line["kernel"]: figures_of(line) for line in lines if "kernel" in line}


def look(program, folder, family, arguments):
    """({kernel: figures}, {pass: its dispatches, each with the name of its kernel}), for tools/dev/model_gpu.py."""
    files = drivers(folder)
    if not files:
        missing("there is no radeon_icd.json")
    done, lines = run([program, *arguments], files[0], family)
    if not lines:
        missing(f"{family}: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
    names = {line["number"]: line["kernel"] for line in lines if "kernel" in line}
    passes = {line["pass"]: [[names[number], *rest] for number, *rest in line["commands"]]
              for line in lines if "pass" in line}
    return kernels_of(lines), passes


def faults_of(name, figures, budget):
    if figures["scratch"] or figures["spilled"]:
        yield f"{figures['spilled']} registers are spilled, {figures['scratch']} bytes of scratch memory"
    if figures["fused"]:
        yield "fused arithmetic: " + ", ".join(figures["fused"])
    if budget is None:
        yield "has no budget"
        return
    for column, most in zip(COLUMNS, budget):
        if figures[column] > most:
            yield f"{column}: {figures[column]}, and the budget is {most}"


def read_budgets():
    budgets = {}
    for line in BUDGETS.read_text().splitlines() if BUDGETS.exists() else []:
        if line and not line.startswith("#"):
            *numbers, name = line.split(None, len(COLUMNS))
            budgets[name] = [int(n) for n in numbers]
    return budgets


def write_budgets(found):
    lines = ["# What a kernel (shader and constants) may take at most; kernel_code_test.py says what of, and writes this.",
             "#" + " ".join(f"{column:>9}" for column in COLUMNS) + "  kernel"]
    names = sorted({name for kernels in found.values() for name in kernels})
    for name in names:
        most = [max(kernels[name][column] for kernels in found.values() if name in kernels) for column in COLUMNS]
        lines.append(" " + " ".join(f"{n:>9}" for n in most) + "  " + name)
    BUDGETS.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("driver")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--families", default=",".join(FAMILIES))
    options, arguments = parser.parse_known_args()
    files = drivers(options.driver)
    if not files:
        missing("there is no radeon_icd.json")
    families = options.families.split(",")

    def compile_for(family):
        return run([options.program, *arguments], files[0], family)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(families, pool.map(compile_for, families)))
    found, used, built = {}, set(), set()
    for family, (done, lines) in results.items():
        if not lines:
            missing(f"{family}: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
        head = lines[0]
        if family.upper() not in head["device"].upper():
            missing(f"{files[0]} shows {head['device']} where {family} is asked for")
        found[family] = kernels_of(lines)
        built |= set(head["shaders"])
        used |= {name.split()[0] for name in found[family]}
        print(f"{head['device']}, {head['driver']}: {len(found[family])} kernels, "
              f"{sum(len(k['loops']) for k in found[family].values())} loops")
    if options.write:
        write_budgets(found)
    if arguments:
        return
    budgets = read_budgets()
    faults = [f"{family}, {name}: {fault}" for family, kernels in found.items() for name, figures in kernels.items()
              for fault in faults_of(name, figures, budgets.get(name))]
    if families == FAMILIES:
        faults += [f"{name}: a budget for no kernel" for name in budgets if not any(name in k for k in found.values())]
    faults += [f"{name}: no kernel of it was compiled" for name in sorted(built - used) if not ELSEWHERE.search(name)]
    print(*faults, sep="\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
