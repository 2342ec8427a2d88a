#!/usr/bin/env python3
"""A shared library shows exactly the functions that its header declares, under its SONAME.

usage: symbols_test.py LIBRARY HEADER SONAME
"""
import re
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def declared(header):
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    return set(re.findall(r"\bAERIE_API\b[^;]*?\b(aerie_\w+)\s*\(", text))


def shown(library):
    """Names of the symbols of all kinds that a library exports, without that of the version itself."""
    lines = [line.split() for line in output("nm", "-D", "--defined-only", library).splitlines()]
    return {name.split("@")[0] for _, kind, name in lines if kind != "A"}


def main():
    library, header, soname = sys.argv[1:]
    assert declared("AERIE_API int aerie_a(void); AERIE_API const char*\naerie_b(int x);") == {"aerie_a", "aerie_b"}
    with open(header, encoding="utf-8") as file:
        wanted = declared(file.read())
    got = shown(library)
    faults = [f"{name} is declared and not shown" for name in sorted(wanted - got)]
    faults += [f"{name} is shown and not declared" for name in sorted(got - wanted)]
    if f"[{soname}]" not in output("readelf", "-d", library):
        faults.append(f"the library's SONAME is not {soname}")
    print("\n".join(faults) or f"{len(got)} functions")
    return 1 if faults or not got else 0


if __name__ == "__main__":
    sys.exit(main())
