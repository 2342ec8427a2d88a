#!/usr/bin/env python3
"""docs/architecture.md names files and folders that exist.

usage: architecture_test.py REPOSITORY

<op> stands for any op: at least three files must match. A page that names too few of them was not read.
"""
import glob
import os
import re
import sys

ROOMS = ("src/", "backends/", "backends", "shaders/", "tests/", "tools/", "tools", "CMakeLists.txt")
LEAST_NAMES = 40


def missing(text, root):
    """([names of files and folders that do not exist], how many names were looked for)."""
    names = {name for name in re.findall(r"`([^`\s]+)`", text) if name.startswith(ROOMS)}
    lost = []
    for name in sorted(names):
        pattern = os.path.join(root, re.sub(r"<\w+>", "*", name))
        if len(glob.glob(pattern)) < (3 if "<" in name else 1):
            lost.append(name)
    return lost, len(names)


def main():
    root = sys.argv[1]
    assert missing("`src/core/no_such_file.h` and `tools/no_<op>.cpp`", root)[0], "a planted fault is not found"
    with open(os.path.join(root, "docs", "architecture.md"), encoding="utf-8") as page:
        lost, count = missing(page.read(), root)
    if lost:
        sys.exit("docs/architecture.md names what is not there: " + ", ".join(lost))
    if count < LEAST_NAMES:
        sys.exit(f"only {count} names found in docs/architecture.md")
    print(f"{count} names, all there")


main()
