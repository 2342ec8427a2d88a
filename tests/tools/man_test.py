#!/usr/bin/env python3
"""Manual pages render without a warning, show each flag of each help, and name no flag that is not there.

usage: man_test.py PROGRAM PAGES-FOLDER FURTHER-PAGE...
"""
import os
import re
import shutil
import subprocess
import sys

SKIPPED = 77


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode()


def rendered(page):
    """(the page as a terminal shows it, without bold and underlines; the warnings of groff)."""
    done = subprocess.run(["groff", "-mandoc", "-Tutf8", "-P-c", "-rLL=200n", "-ww", page], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    text = re.sub(r".\x08", "", done.stdout.decode())
    return re.sub("[\u2010\u2212]", "-", text), done.stderr.decode().strip()


def flags(text):
    """The flags that a text names, as --word and -w, but not within words."""
    return set(re.findall(r"(?<![\w<-])--?[A-Za-z][\w-]*", text)) - {"-md", "-hf"}


def entries(text):
    """The flags that a help or a page describes: those that begin a line."""
    return {flag for line in re.findall(r"^ {2}(?: {3})?(-\S.*)$", text, flags=re.M)
            for flag in flags(re.split(r" {2,}| (?=[A-Z])", line)[0].replace(",", ", "))}


def faults_of(shown, help_text, commands):
    """Faults of a page: flags that it lacks, that its help does not have, or that its examples use and no help has."""
    faults = [f"lacks {flag}" for flag in sorted(entries(help_text) - entries(shown))]
    faults += [f"describes {flag}, which its help does not have"
               for flag in sorted(entries(shown) - entries(help_text))]
    for command, used in re.findall(r"^ +aerie ([a-z]+) (.*)$", shown, flags=re.M):
        faults += [f"uses {flag} of {command}" for flag in sorted(flags(used) - commands.get(command, set()))]
    return faults


def check_itself():
    said = "Options:\n  -h,--help   Print\n  -m,--model MODEL   x --no\n"
    page = "     -h, --help\n        Print\n\n     -m, --model MODEL\n        x --no\n   aerie chat -m A --model B\n"
    assert entries(said) == {"-h", "--help", "-m", "--model"} == entries(page), (entries(said), entries(page))
    assert not faults_of(page, said, {"chat": {"-m", "--model"}})
    assert faults_of(page.replace("-h, ", ""), said, {}) == ["lacks -h", "uses --model of chat", "uses -m of chat"]


def main():
    program, folder, *further = sys.argv[1:]
    check_itself()
    if not shutil.which("groff"):
        print("Skipped: groff is not here")
        return SKIPPED
    top = output(program, "--help")
    names = re.findall(r"^  ([a-z]+)  ", top.split("Subcommands:")[1], flags=re.M)
    helps = {name: output(program, name, "--help-all") for name in names}
    commands = {name: entries(text) for name, text in helps.items()}
    pages = {"aerie.1": top, **{f"aerie-{name}.1": text for name, text in helps.items()}}
    faults = [f"{name}: no such page" for name in sorted(set(pages) ^ set(os.listdir(folder)))]
    for name, said in pages.items():
        shown, warnings = rendered(os.path.join(folder, name))
        faults += [f"{name} {fault}" for fault in faults_of(shown, said, commands)]
        faults += [f"{name}: {warnings}"] if warnings else []
    variables = set(re.findall(r"AERIE_[A-Z]+", "".join([top, *helps.values()])))
    shown, _ = rendered(os.path.join(folder, "aerie.1"))
    faults += [f"aerie.1 lacks {variable}" for variable in sorted(variables) if variable not in shown]
    for page in further:
        shown, warnings = rendered(page)
        faults += [f"{page}: {warnings or 'has no NAME'}"] if warnings or "\nNAME\n" not in shown else []
    print("\n".join(faults) or f"{len(pages) + len(further)} pages, {sum(map(len, commands.values()))} flags")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
