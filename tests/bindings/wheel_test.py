#!/usr/bin/env python3
"""The wheel installs where nothing else of aerie is, and the program that its README shows runs.

usage: wheel_test.py REPOSITORY LIBRARY
"""
import base64
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile

REPOSITORY, LIBRARY = map(os.path.abspath, sys.argv[1:3])
BARE = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}


def output(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_record(path):
    """Every file of the wheel stands in its RECORD with its hash."""
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        record = next(name for name in names if name.endswith("/RECORD"))
        for line in wheel.read(record).decode().splitlines():
            name, digest, size = line.rsplit(",", 2)
            names.remove(name)
            if name == record:
                continue
            content = wheel.read(name)
            want = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert (digest, int(size)) == (want, len(content)), line
    assert not names, names


def installed(path, folder):
    """A Python that has the wheel, and how: by pip in an empty environment, or unpacked where there is no pip."""
    place = os.path.join(folder, "environment")
    made = subprocess.run([sys.executable, "-m", "venv", place], capture_output=True)
    if made.returncode == 0:
        python = os.path.join(place, "bin", "python")
        output(python, "-m", "pip", "install", "--no-index", "--quiet", "--disable-pip-version-check", path, env=BARE)
        return python, BARE, "by pip"
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(os.path.join(folder, "unpacked"))
    return sys.executable, dict(BARE, PYTHONPATH=os.path.join(folder, "unpacked")), "unpacked"


def shown(readme):
    with open(os.path.join(REPOSITORY, readme), encoding="utf-8") as file:
        text = file.read()
    assert text.count("\n") <= 20, f"{readme} has more than twenty lines"
    return re.search(r"```python\n(.*?)```", text, re.S)[1]


def main():
    with tempfile.TemporaryDirectory(prefix="aerie_wheel_") as folder:
        path = output(sys.executable, os.path.join(REPOSITORY, "bindings", "package.py"), "wheel", LIBRARY, folder).strip()
        check_record(path)
        python, around, how = installed(path, folder)
        around = dict(around, HOME=folder, XDG_CACHE_HOME=os.path.join(folder, "cache"))
        program = shown("bindings/python/README.md")
        assert len(program.splitlines()) <= 15, "the program has more than 15 lines"
        said = output(python, "-c", program, cwd=folder, env=around)
        assert re.search(r"^\d+ of \d+ tokens were drafted$", said, re.M), said
        assert said.rstrip().endswith(("CANCELLED", "STOP")), said
        assert "MODEL 13048320 13048320" in said, said
        assert os.path.getsize(os.path.join(folder, "apples.talk")) > 1000
        again = output(python, "-c", "import aerie\nwith aerie.Model('aerie-tiny') as model:\n"
                       "    talk = model.load('apples.talk')\n    print(len(talk.ids) > 20, model.info.path)", cwd=folder, env=around)
        assert again.startswith("True ") and "/lib/models/aerie-tiny" in again, again
        print(f"{os.path.basename(path)}, {os.path.getsize(path) >> 20} MB, installed {how}: the README's program runs")


main()
