"""What ptxas says of every CUDA kernel: registers, shared memory, spills. A kernel that spills fails."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77  # as CTest is told


def kernel_name(mangled):
    """embed_kernel, or multiply_kernel<Q8, 4>: the part of a mangled name that people look for."""
    for digits in re.finditer(r"\d+", mangled):
        for first in range(digits.start(), digits.end()):  # a hash before it may end in digits
            end = digits.end() + int(mangled[first : digits.end()])
            name = mangled[digits.end() : end]
            if re.fullmatch(r"[a-z][a-z0-9_]*_kernel", name):
                return name + template_arguments(mangled[end:])
    return mangled


def template_arguments(rest):
    arguments = re.match(r"I(.*?)E+v", rest)
    if not arguments:
        return ""
    kinds = {"f": "f32", "t": "f16"}
    found = re.findall(r"\d([A-Z]+\d*)|Li(\d+)E|^([ft])", arguments.group(1) + "E")
    return "<" + ", ".join(a or b or kinds[c] for a, b, c in found) + ">"


def compile_one(nvcc, architecture, options, source):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as out:
        command = [nvcc, "-cubin", f"-arch=sm_{architecture}", "-Xptxas", "-v", *options, source, "-o", out.name]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    return source, result.returncode, result.stdout + result.stderr


def kernels(log):
    """(name, registers, shared bytes, spilled bytes) of each kernel in the log."""
    for part in log.split("Compiling entry function ")[1:]:
        mangled = part[1 : part.index("'", 1)]
        spilled = sum(map(int, re.findall(r"(\d+) bytes spill (?:stores|loads)", part)))
        registers = int(re.search(r"Used (\d+) registers", part).group(1))
        shared = re.search(r"(\d+) bytes smem", part)
        yield kernel_name(mangled), registers, int(shared.group(1)) if shared else 0, spilled


def main():
    nvcc, architecture, root = sys.argv[1:4]
    if not shutil.which(nvcc):
        print("SKIPPED: no nvcc here")
        return SKIPPED
    folder = os.path.join(root, "backends", "cuda")
    sources = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".cu"))
    options = ["-std=c++20", "-O3", "-fmad=false", "--expt-relaxed-constexpr",
               "-I", os.path.join(root, "src"), "-I", os.path.join(root, "backends")]
    spilling = found = 0
    print(f"{'kernel, sm_' + architecture:44} {'registers':>9} {'shared':>8} {'spilled':>8}")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, code, log in pool.map(lambda s: compile_one(nvcc, architecture, options, s), sources):
            if code != 0:
                print(f"{source}: nvcc failed\n{log}")
                return 1
            for name, registers, shared, spilled in kernels(log):
                print(f"{name:44} {registers:9} {shared:8} {spilled:8}")
                found += 1
                spilling += spilled > 0
    print(f"{found} kernels, {spilling} of them spill")
    return 1 if spilling or found == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
