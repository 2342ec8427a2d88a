"""What ptxas says of every CUDA kernel: registers, shared memory, spills. A kernel that spills fails.

cuda_resources_test.py NVCC ROOT ARCHITECTURE...
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77  # as CTest is told


def kernel_name(mangled):
    """embed_kernel, or multiply_kernel<Q8_0, 4>: the part of a mangled name that people look for."""
    found = [mangled]
    for digits in re.finditer(r"\d+", mangled):
        for first in range(digits.start(), digits.end()):  # a hash before it may end in digits
            end = digits.end() + int(mangled[first : digits.end()])
            name = mangled[digits.end() : end]
            if re.fullmatch(r"[a-z][a-z0-9_]*_kernel", name):
                found.append(name + template_arguments(mangled[end:]))
    return min(found, key=len)  # or a piece of the hash is taken along


def template_arguments(rest):
    arguments = re.match(r"I(.*?)E+v", rest)
    if not arguments:
        return ""
    text, found, at = arguments.group(1) + "E", [], 0
    while match := re.compile(r"Li(\d+)E|(\d+)(?=[A-Z])|^([ft])").search(text, at):
        number, length, kind = match.groups()
        at = match.end() + int(length or 0)
        found.append(number or (text[match.end() : at] if length else {"f": "f32", "t": "f16"}[kind]))
    return "<" + ", ".join(found) + ">"


def compile_one(nvcc, architecture, options, source):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as out:
        command = [nvcc, "-cubin", f"-arch=sm_{architecture}", "-Xptxas", "-v", *options, source, "-o", out.name]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


def kernels(log):
    """(name, registers, shared bytes, spilled bytes) of each kernel in the log."""
    for part in log.split("Compiling entry function ")[1:]:
        mangled = part[1 : part.index("'", 1)]
        spilled = sum(map(int, re.findall(r"(\d+) bytes spill (?:stores|loads)", part)))
        registers = int(re.search(r"Used (\d+) registers", part).group(1))
        shared = re.search(r"(\d+) bytes smem", part)
        yield kernel_name(mangled), registers, int(shared.group(1)) if shared else 0, spilled


def measure(nvcc, architectures, root):
    """{(source, kernel): {architecture: (registers, shared bytes, spilled bytes)}}; None if something does not compile."""
    folder = os.path.join(root, "backends", "cuda")
    sources = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".cu"))
    options = ["-std=c++20", "-O3", "-fmad=false", "--expt-relaxed-constexpr",
               "-I", os.path.join(root, "src"), "-I", os.path.join(root, "backends")]
    tasks = [(architecture, source) for source in sources for architecture in architectures]
    table = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        logs = pool.map(lambda task: compile_one(nvcc, task[0], options, task[1]), tasks)
        for (architecture, source), (code, log) in zip(tasks, logs):
            if code != 0:
                print(f"{source}: nvcc failed for sm_{architecture}\n{log}")
                return None
            for name, *figures in kernels(log):
                table.setdefault((source, name), {})[architecture] = figures
    return table


def main():
    nvcc, root, architectures = sys.argv[1], sys.argv[2], sys.argv[3:]
    if not shutil.which(nvcc):
        print("SKIPPED: no nvcc here")
        return SKIPPED
    table = measure(nvcc, architectures, root)
    if not table:
        return 1
    print(f"{'registers of kernel':32}" + "".join(f"{'sm_' + a:>8}" for a in architectures) + f"{'shared':>8} {'spilled':>8}")
    spilling = 0
    for (_, name), figures in table.items():
        registers, shared, spilled = zip(*(figures[a] for a in architectures))
        print(f"{name:32}" + "".join(f"{r:8}" for r in registers) + f"{max(shared):8} {max(spilled):8}")
        spilling += max(spilled) > 0
    print(f"{len(table)} kernels, {spilling} of them spill")
    return 1 if spilling else 0


if __name__ == "__main__":
    sys.exit(main())
