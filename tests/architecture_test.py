#!/usr/bin/env python3
"""docs/architecture.md names files and folders that exist, and includes point downwards as it says.

usage: architecture_test.py REPOSITORY

<op> stands for any op: at least three files must match. A page that names too few of them was not read.
"""
import glob
import os
import re
import sys

ROOMS = ("src/", "backends/", "backends", "shaders/", "tests/", "tools/", "tools", "CMakeLists.txt")
MIN_NAMES = 40
MIN_FILES = 400

# The folders of src, and what each may include.
BELOW = {}
for name, more in (("core", ()), ("backend", ("core",)), ("io", ("core",)), ("jinja", ("core", "io")), ("text", ("jinja",)),
                   ("model", ("core", "io", "backend")), ("draft", ("model",)), ("engine", ("draft", "text")),
                   ("measure", ("engine",)), ("talk", ("engine",)), ("train", ("talk",)), ("serve", ("talk",)), ("api", ("talk",))):
    BELOW[name] = set(more).union(*(BELOW[below] for below in more))


def missing(text, root):
    """([names of files and folders that do not exist], how many names were looked for)."""
    names = {name for name in re.findall(r"`([^`\s]+)`", text) if name.startswith(ROOMS)}
    lost = []
    for name in sorted(names):
        pattern = os.path.join(root, re.sub(r"<\w+>", "*", name))
        if len(glob.glob(pattern)) < (3 if "<" in name else 1):
            lost.append(name)
    return lost, len(names)


def upward(folder, text):
    """The includes of a file of `folder` that its layer does not allow."""
    return [name for name in re.findall(r'#include "(\w+)/', text)
            if name in BELOW and name != folder and name not in BELOW[folder]]


def includes(root):
    """(path, folder it must not include) of all files, and how many files were read."""
    faults, read = [], 0
    for folder in BELOW:
        for path in glob.glob(os.path.join(root, "src", folder, "**", "*.*"), recursive=True):
            if path.endswith((".h", ".cpp", ".in")):
                with open(path, encoding="utf-8") as file:
                    faults += [(os.path.relpath(path, root), name) for name in upward(folder, file.read())]
                read += 1
    for path in glob.glob(os.path.join(root, "backends", "*", "**", "*.*"), recursive=True):
        if path.endswith((".h", ".cpp", ".cu", ".cuh")):
            with open(path, encoding="utf-8") as file:
                names = re.findall(r'#include "(\w+)/', file.read())
            faults += [(os.path.relpath(path, root), name) for name in names if name in BELOW and name not in ("core", "backend")]
            read += 1
    return faults, read


def main():
    root = sys.argv[1]
    assert upward("core", '#include "io/json.h"') == ["io"] and not upward("io", '#include "core/dtype.h"')
    faults, read = includes(root)
    if faults:
        sys.exit("\n".join(f"{path} includes {name}, which is not below it" for path, name in faults))
    if read < MIN_FILES:
        sys.exit(f"only {read} files were read for their includes")
    assert missing("`src/core/no_such_file.h` and `tools/no_<op>.cpp`", root)[0], "a planted fault is not found"
    with open(os.path.join(root, "docs", "architecture.md"), encoding="utf-8") as page:
        lost, count = missing(page.read(), root)
    if lost:
        sys.exit("docs/architecture.md names what is not there: " + ", ".join(lost))
    if count < MIN_NAMES:
        sys.exit(f"only {count} names found in docs/architecture.md")
    print(f"{count} names, all there")


main()
