"""Checks shaders as MoltenVK hands them to Metal. All that a Mac uses (those without packed dot products and
cooperative matrices) translate. No array's size depends on a specialisation constant, since Metal would take the
default. No workgroup passes memory to another in the same dispatch, since Metal does not order that.

msl_test.py SPIRV-CROSS HEADER..., the headers as CMake embeds them."""

import os
import re
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

OTHERS = re.compile(r"_(dot|dot_normed|fetch|cooperative)\.spv\.h$")


def faults_of(code):
    sizes = re.findall(r"^ *(?!return )(?:thread |threadgroup )?\w+ \w+\[(\w+)\];", code, re.M)
    sizes += re.findall(r"spvUnsafeArray<[^<>]*, (\w+)>", code)
    for size in sorted(set(sizes)):
        if not size.isdigit():
            yield f"an array has {size} elements"
    for line in code.splitlines():
        if "mem_device" in line:
            yield f"a barrier for memory that all workgroups share: {line.strip()}"
        if re.search(r"\bvolatile\b", line):
            yield f"memory that others change: {line.strip()}"


def check(tool, path, folder):
    with open(path) as text:
        words = [int(word, 16) for word in re.findall(r"0x([0-9a-f]{8})", text.read())]
    name = os.path.basename(path).removesuffix(".spv.h")
    module = os.path.join(folder, name + ".spv")
    with open(module, "wb") as file:
        file.write(struct.pack(f"<{len(words)}I", *words))
    done = subprocess.run([tool, "--msl", "--msl-version", "20100", module], capture_output=True, text=True)
    if done.returncode or "kernel void" not in done.stdout:
        return [f"{name} does not translate: {(done.stderr.strip() or 'no kernel').splitlines()[0]}"]
    return [f"{name}: {fault}" for fault in faults_of(done.stdout)]


def main():
    tool, *headers = sys.argv[1:]
    if not os.path.exists(tool):
        print("SKIPPED: no spirv-cross here")
        sys.exit(77)
    wanted = [path for path in headers if not OTHERS.search(path)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = sum(pool.map(lambda path: check(tool, path, folder), wanted), [])
    if len(wanted) < 40:
        faults.append(f"only {len(wanted)} shaders: this looks at the wrong files")
    print("\n".join(faults) or f"{len(wanted)} shaders suit Metal")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
