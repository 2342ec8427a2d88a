"""Compiles the kernels of backends/cuda. Returns the registers, shared memory and spills of each, as ptxas counts them,
and its instructions where its machine code can be read (sass.py)."""

import concurrent.futures
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import sass

READABLE = ("80", "86", "89", "90")
OPTIONS = ["-std=c++20", "-O3", "-fmad=false", "--expt-relaxed-constexpr"]


@dataclass
class Kernel:
    source: str
    name: str
    registers: int
    shared: int
    spilled: int
    instructions: list  # [] where they cannot be read


def kernel_name(mangled):
    """The readable part of a mangled name, such as embed_kernel or multiply_kernel<Q8_0, 4>."""
    found = [mangled]
    for digits in re.finditer(r"\d+", mangled):
        for first in range(digits.start(), digits.end()):  # a hash before it may end in digits
            end = digits.end() + int(mangled[first : digits.end()])
            name = mangled[digits.end() : end]
            if re.fullmatch(r"[a-z][a-z0-9_]*_kernel", name):
                found.append(name + template_arguments(mangled[end:]))
    return min(found, key=len)  # a longer one takes along a piece of the hash


def template_arguments(rest):
    arguments = re.match(r"I(.*?)E+v", rest)
    if not arguments:
        return ""
    text, found, at = arguments.group(1) + "E", [], 0
    while match := re.compile(r"L[ijb](\d+)E|(\d+)(?=[A-Z])|^([ft])").search(text, at):
        number, length, kind = match.groups()
        at = match.end() + int(length or 0)
        found.append(number or (text[match.end() : at] if length else {"f": "f32", "t": "f16"}[kind]))
    return "<" + ", ".join(found) + ">"


def figures_of(log):
    """{mangled name: (registers, shared bytes, spilled bytes)} of each kernel in the log of ptxas."""
    found = {}
    for part in log.split("Compiling entry function ")[1:]:
        mangled = part[1 : part.index("'", 1)]
        spilled = sum(map(int, re.findall(r"(\d+) bytes spill (?:stores|loads)", part)))
        registers = int(re.search(r"Used (\d+) registers", part).group(1))
        shared = re.search(r"(\d+) bytes smem", part)
        found[mangled] = registers, int(shared.group(1)) if shared else 0, spilled
    return found


def compile_one(nvcc, root, source, architecture):
    """The kernels of one .cu file, as a list of Kernel. SystemExit if it does not compile."""
    includes = ["-I", f"{root}/src", "-I", f"{root}/backends"]
    with tempfile.NamedTemporaryFile(suffix=".cubin") as out:
        # ccache keeps the cubin and the log of an unchanged kernel. It takes -c for a compilation, which nvcc ignores here.
        launcher = [path] if (path := shutil.which("ccache")) else []
        command = [*launcher, nvcc, "-c", "-cubin", f"-arch=sm_{architecture}", "-Xptxas", "-v", *OPTIONS, *includes, source, "-o", out.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        log = done.stdout + done.stderr
        if done.returncode:
            raise SystemExit(f"{source}: nvcc failed for sm_{architecture}\n{log}")
        code = sass.kernels_of(Path(out.name).read_bytes()) if architecture in READABLE else {}
    return [Kernel(Path(source).name, kernel_name(mangled), *figures, code.get(mangled, []))
            for mangled, figures in figures_of(log).items()]


def compile_all(nvcc, root, architectures, names=()):
    """{architecture: {(source, kernel's name): Kernel}} of the .cu files with these names (without .cu), or of all."""
    sources = sorted(str(path) for path in Path(root, "backends/cuda").glob("*.cu") if not names or path.stem in names)
    tasks = [(source, architecture) for source in sources for architecture in architectures]
    found = {architecture: {} for architecture in architectures}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (_, architecture), kernels in zip(tasks, pool.map(lambda task: compile_one(nvcc, root, *task), tasks)):
            found[architecture].update({(k.source, k.name): k for k in kernels})
    return found
