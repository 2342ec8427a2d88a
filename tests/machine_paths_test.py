#!/usr/bin/env python3
"""No file of the project holds a path of the machine that made it, and no script names a mirror.

usage: machine_paths_test.py REPOSITORY

Files that are not source code, binary files among them, may not name folders for temporary files either. First some
planted paths must be found, and harmless words must not.
"""
import os
import re
import sys
import tempfile

from repository_files import repository_files

FOLDERS = rb"(?:home|Users)/[A-Za-z][\w.-]*/|(?:root|work|workspace|content|scratch)/[\w.-]"
# In source files a path is ignored if it continues another name: $folder/root/x, "$folder"/root/x.
IN_SOURCE = re.compile(rb"(?<![\w.*)}\]>-])(?<![\w}][\"'])/(?:" + FOLDERS + rb")|[A-Z]:\\+Users\\")
IN_DATA = re.compile(rb"/(?:" + FOLDERS + rb"|(?:var/)?tmp/[\w.-])|[A-Z]:\\+Users\\")
# Scripts use the mirror that apt is configured for, and do not change apt's sources.
IN_SCRIPT = re.compile(rb"https?://[\w.-]+|/etc/apt/[\w.-]+")
SOURCES = (".cpp", ".h", ".cu", ".comp", ".glsl", ".sh", ".py", ".md", ".cmake", "CMakeLists.txt", "run")


def path_in(name, content):
    """The first path of a machine or name of a mirror, or None."""
    if name.startswith(("scripts/", ".ci/")) and IN_SCRIPT.search(content):
        return IN_SCRIPT.search(content).group()
    is_source = name.endswith(SOURCES) and b"\0" not in content
    match = (IN_SOURCE if is_source else IN_DATA).search(content)
    return match and content[match.start():match.start() + 60]


def faults(root):
    found = []
    for name in repository_files(root):
        path = os.path.join(root, name)
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as file:
                held = path_in(name, file.read())
            if held:
                found.append(f"{name} holds {held!r}")
    return found


def check_itself():
    home = "/ho" + "me/someone/x"
    bad = {"a.bin": b"\0\x0a0/tm" + b"p/tiny/spm.txt", "b.json": b'{"made_in":"/ro' + b'ot/out"}',
           "scripts/m.sh": b"echo deb ht" + b"tp://deb.debian.org/debian",
           "c.cpp": f'const char* kFile = "{home}";'.encode(), "d.md": f"see {home}".encode()}
    good = {"a.sh": b'log=/tm' + b'p/log; ls "$folder"/ro' + b'ot/bin $folder/ro' + b'ot/x ~/x $HOME/x',
            "b.bin": b"\0archive/data/9PK"}
    with tempfile.TemporaryDirectory() as folder:
        for name, content in {**bad, **{"good_" + name: content for name, content in good.items()}}.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
        found = sorted(fault.split()[0] for fault in faults(folder))
    assert found == sorted(bad), f"the test itself is wrong: it found {found}"


def main():
    check_itself()
    found = faults(sys.argv[1])
    print("\n".join(found) or "no file holds a path of a machine, no script a mirror")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
