#!/usr/bin/env python3
"""libaerie.dll shows what aerie.h declares and needs nothing but Windows; programs that use it say under Wine what
`aerie generate` says here, on every instruction set of this CPU, and find files by any name.

usage: windows_test.py PREFIX PROGRAMS SCRATCH AERIE (the unpacked archive, the programs' build, a folder for files, the
program of this system)
"""
import os
import re
import shutil
import subprocess
import sys

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(SOURCE, "tests", "api"))
from install_test import TOKENS, golden_prompts  # noqa: E402
from symbols_test import declared  # noqa: E402

# DLLs that every Windows has.
SYSTEM = {"KERNEL32.dll", "ADVAPI32.dll", "msvcrt.dll", "api-ms-win-core-synch-l1-2-0.dll"}


def output(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{(done.stdout + done.stderr).decode(errors='replace')}")
    return done.stdout


def check_library(library, header):
    with open(header, encoding="utf-8") as file:
        wanted = declared(file.read())
    said = output("x86_64-w64-mingw32-objdump", "-p", library).decode()
    table = said[said.index("[Ordinal/Name Pointer] Table"):]
    table = table[:table.index("\n\n")]
    got = set(re.findall(r"^\s*\[\s*\d+\] (\S+)$", table, flags=re.M))
    if got != wanted or not got:
        sys.exit(f"{library} shows {sorted(got - wanted)} and not {sorted(wanted - got)}")
    needed = set(re.findall(r"DLL Name: (\S+)", said))
    if not needed or needed - SYSTEM:
        sys.exit(f"{library} needs {sorted(needed)}")
    return len(got)


class Wine:
    """Programs in a folder that holds all that they need, as they would be shipped."""

    def __init__(self, prefix, folder):
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        self.around = dict(os.environ, WINEPREFIX=prefix, WINEDEBUG="-all", WINEARCH="win64", LC_ALL="C.UTF-8",
                           WINEDLLOVERRIDES="mscoree,mshtml=")
        self.around.pop("DISPLAY", None)
        output("wine", "wineboot", "--update", env=self.around)

    def add(self, *files):
        for file in files:
            shutil.copy(file, self.folder)

    def run(self, program, *arguments, **variables):
        said = output("wine", f"{program}.exe", *arguments, cwd=self.folder, env=dict(self.around, **variables))
        return said.replace(b"\r\n", b"\n")  # the programs' C library ends lines with CR LF

    def close(self):
        subprocess.run(["wineserver", "--kill"], env=self.around)


def isas():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = set(re.search(r"^flags\s*:(.*)$", file.read(), flags=re.M).group(1).split())
    needs = {"avx2": {"avx2", "fma", "f16c"}, "avxvnni": {"avx2", "fma", "f16c", "avx_vnni"},
             "avx512": {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512_vnni"}}
    return ["portable"] + [name for name, wanted in needs.items() if wanted <= flags]


def check_texts(wine, aerie):
    """Compares texts of both programs for every prompt, and of one on every instruction set for the first prompt.
    Returns how many."""
    model = os.path.join(SOURCE, "models", "aerie-tiny")
    texts = 0
    for number, prompt in enumerate(golden_prompts(SOURCE)):
        want = output(aerie, "generate", "-m", model, "-p", prompt, "-n", TOKENS, "-q")
        runs = [("minimal", {}), ("minimal_static", {})]
        if number == 0:
            runs += [("minimal", {"AERIE_CPU_ISA": isa}) for isa in isas()]
        for program, variables in runs:
            got = wine.run(program, "aerie-tiny", prompt, **variables)
            if got != want or len(want) < 10:
                sys.exit(f"{program}.exe {variables} says {got!r}, aerie generate {want!r}")
            texts += 1
    return texts


def main():
    prefix, programs, scratch, aerie = map(os.path.abspath, sys.argv[1:])
    library = os.path.join(prefix, "bin", "libaerie.dll")
    functions = check_library(library, os.path.join(prefix, "include", "aerie.h"))
    wine = Wine(os.path.join(scratch, "wine"), os.path.join(scratch, "programs"))
    try:
        names = ["examples/minimal", "examples/stream", "minimal_static", "places"]
        wine.add(library, *(os.path.join(programs, f"{name}.exe") for name in names))
        models = os.path.join(prefix, "share", "aerie", "models")
        shutil.copytree(models, os.path.join(wine.folder, "models"))
        for ending in ("", "-eagle"):
            shutil.copytree(os.path.join(models, "aerie-tiny" + ending), os.path.join(wine.folder, "modèle-模型" + ending))
        texts = check_texts(wine, aerie)
        folders = ("aerie-tiny", "modèle-模型")
        if len({wine.run("minimal", folder, "Once upon a time") for folder in folders}) != 1:
            sys.exit("minimal.exe: another text by another name of the model")
        wine.run("stream")
        # The archive's own programs find its models.
        unpacked = output("wine", os.path.join(prefix, "bin", "minimal.exe"), "smollm2", "The capital of France is",
                          env=wine.around, cwd=os.path.dirname(prefix))
        if b"Paris" not in unpacked:
            sys.exit(f"minimal.exe of the archive says {unpacked!r}")
        print(wine.run("places").decode().strip())
        print(f"{functions} functions, {texts} texts: those of aerie generate")
    finally:
        wine.close()


if __name__ == "__main__":
    main()
