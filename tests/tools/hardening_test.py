#!/usr/bin/env python3
"""A program or library of a Release build is hardened: its stack frames and C strings are checked, its tables of the
linker are read-only, its stack is no code, and a library stays in memory for the threads that may run it.

usage: hardening_test.py FILE...
"""
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def faults(segments, dynamic, symbols, is_library):
    wanted = [
        ("GNU_RELRO" in segments, "has no read-only relocations (-z relro)"),
        ("BIND_NOW" in dynamic or "NOW" in dynamic.split("FLAGS_1")[-1], "binds functions late (no -z now)"),
        (any("GNU_STACK" in line and " RW " in line for line in segments.splitlines()), "has a stack that is code"),
        ("DYN" in segments.splitlines()[1], "is not position-independent"),
        ("__stack_chk_fail" in symbols, "has no stack protector"),
        ("_chk@" in symbols, "has no checked functions of C (_FORTIFY_SOURCE)"),
        ("__glibcxx_assert_fail" in symbols, "has no checked containers (_GLIBCXX_ASSERTIONS)"),
        (not is_library or "NODELETE" in dynamic, "can be unloaded while its threads run"),
    ]
    return [what for holds, what in wanted if not holds]


def main():
    plain = "\nElf file type is EXEC (Executable file)\n GNU_STACK 0x0 0x0 RWE 0x10\n"
    assert len(faults(plain, "", "", True)) == 8, "the test itself is wrong"
    found = []
    for path in sys.argv[1:]:
        found += [f"{path} {what}" for what in faults(
            output("readelf", "-lW", path), output("readelf", "-dW", path), output("readelf", "--dyn-syms", "-W", path),
            ".so" in path)]
    print("\n".join(found) or f"{len(sys.argv) - 1} files are hardened")
    return 1 if found or len(sys.argv) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
