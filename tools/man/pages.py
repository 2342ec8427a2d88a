#!/usr/bin/env python3
"""Writes aerie(1) and a page for each of its commands: what `--help` says, and what FOLDER/<page>.mdoc adds.

usage: pages.py PROGRAM FOLDER OUTPUT-FOLDER

So each flag is described once, in the program. The part of an .mdoc file before its first section goes to the end of
the page's description. The date is that of SOURCE_DATE_EPOCH, or today.
"""
import datetime
import os
import re
import shutil
import subprocess
import sys
import textwrap

COLUMN = 30  # where descriptions begin in CLI11's help


class Help:
    """A help as CLI11 writes it: about, usage, groups [(title, [(name, text)])], footer."""

    def __init__(self, text):
        about, rest = re.split(r"^Usage: ", text, maxsplit=1, flags=re.M)
        self.about, self.groups, self.footer = " ".join(about.split()), [], ""
        self.usage, *lines = rest.split("\n")
        for line in lines:
            if line.startswith(" " * COLUMN):  # a description begins or goes on
                name, text = self.groups[-1][1].pop()
                self.groups[-1][1].append((name, f"{text} {line.strip()}".strip()))
            elif line.startswith("  "):
                # A name that is too long for its column has its description in the next lines.
                end = COLUMN if line[COLUMN - 1:COLUMN] in ("", " ") else len(line)
                self.groups[-1][1].append((line[:end].strip(), line[end:].strip()))
            elif line.endswith(":"):
                self.groups.append((line[:-1], []))
            else:
                self.footer += line + "\n"

    def entries(self, title):
        return [entry for group, entries in self.groups if group == title for entry in entries]


def help_of(program, *command):
    done = subprocess.run([program, *command, "--help-all"], check=True, stdout=subprocess.PIPE)
    return Help(done.stdout.decode())


def prose(text):
    """Text as lines of mdoc: each sentence begins a line, and hyphens are those that can be copied as '-'."""
    text = text.strip().replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"`([^`]+)`", r"\\(oq\1\\(cq", text)
    lines = []
    for sentence in re.split(r"(?<=[\w)][.?])\s+", text):
        lines += textwrap.wrap(sentence, 76, break_long_words=False, break_on_hyphens=False)
    return "".join(("\\&" if line[0] in ".'" else "") + line + "\n" for line in lines)


def item(name, text):
    """The mdoc of a flag, positional argument or command; `name` is as in "-m,--model MODEL REQUIRED"."""
    name, required = re.subn(r" REQUIRED\b", "", name)
    name, *excluded = re.split(r" Excludes: ", name)
    flags, _, value = name.partition(" ")
    if flags.startswith("-"):
        macros = " , ".join("Fl " + flag[1:].replace("-", "\\-") for flag in flags.split(","))
        value = f" Ar {value}" if value else ""
    else:
        macros, value = f"Ar {flags}", ""
    text += "." if required and text[-1] not in ".?" else ""
    return f".It {macros}{value}\n" + prose(text + (" Must be given." if required else "") +
                                            "".join(f" Not along with {other}." for other in excluded))


def synopsis(usage):
    """The mdoc of a usage line, such as "aerie info [OPTIONS] [model]"."""
    words = usage.split()
    names = [word for word in words if word.islower() and word.isalpha()]
    command = [names[0], *names[1:2 if len(words) > 2 or len(names) > 1 else 1]]
    rest = words[len(command):]
    return ".Nm " + " ".join(command) + "\n" + "".join(
        f".Op Ar {word[1:-1].lower()}\n" if word[0] == "[" else f".Ar {word}\n" for word in rest)


def items(entries):
    return ".Bl -tag -width Ds\n" + "".join(item(*entry) for entry in entries) + ".El\n"


def options(groups):
    body = ""
    groups = [group for group in groups if group[0] not in ("Subcommands", "Examples")]
    for title, entries in groups:
        if title in ("Options", "Positionals"):
            body += items(entries)
        else:
            body += ".Ss " + title.replace("-", "\\-") + "\n" + items(entries)
    return f".Sh OPTIONS\n{body}"


def with_examples(sections, entries):
    """The sections with the help's examples: before those of the section EXAMPLES, else where that section belongs."""
    lines = [" ".join(entry).strip().replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
             for entry in entries]
    shown = ".Sh EXAMPLES\n" + "".join(f".Dl {line}\n" for line in lines) if lines else ""
    if ".Sh EXAMPLES\n" in sections:
        return sections.replace(".Sh EXAMPLES\n", shown + ".Pp\n" if shown else ".Sh EXAMPLES\n")
    before, see_also, after = sections.partition(".Sh SEE ALSO\n")
    return before + shown + see_also + after


def commands(entries):
    return ".Sh COMMANDS\n.Bl -tag -width Ds\n" + "".join(
        f".It Xr aerie-{name} 1\n{prose(text)}" for name, text in entries) + ".El\n"


def page(name, shown, more, date, version):
    """A page as mdoc. `more`: the text that its .mdoc file adds."""
    described, section, rest = more.partition(".Sh ")
    subcommands = shown.entries("Subcommands")
    about = "run LLaMA-family models, with drafts that change no token" if subcommands else shown.about
    text = f""".\\" Made by tools/man/pages.py from the program's help.
.Dd {date:%B} {date.day}, {date.year}
.Dt {name.upper()} 1
.Os aerie {version}
.Sh NAME
.Nm {name}
.Nd {about[0].lower() + about[1:] if about[1].islower() else about}
.Sh SYNOPSIS
{synopsis(shown.usage)}.Sh DESCRIPTION
{prose(shown.about + ".") if not subcommands else prose(shown.about)}{described}"""
    if not subcommands and shown.footer.strip():
        text += ".Pp\n" + prose(" ".join(shown.footer.split()))
    text += commands(subcommands) if subcommands else ""
    text += options(shown.groups)
    text += with_examples(section + rest, shown.entries("Examples"))
    return text if subcommands else text + ".Sh SEE ALSO\n.Xr aerie 1\n"


def main():
    program, folder, output = sys.argv[1:]
    version = subprocess.run([program, "--version"], check=True, stdout=subprocess.PIPE).stdout.decode().split()[-1]
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.timezone.utc
    date = datetime.datetime.fromtimestamp(int(seconds), now) if seconds else datetime.datetime.now(now)
    shutil.rmtree(output, ignore_errors=True)
    os.makedirs(output)
    top = help_of(program)
    pages = {"aerie": top}
    pages.update((f"aerie-{name}", help_of(program, name)) for name, _ in top.entries("Subcommands"))
    for name, shown in pages.items():
        more = os.path.join(folder, name + ".mdoc")
        added = ""
        if os.path.exists(more):
            with open(more, encoding="utf-8") as file:
                added = file.read()
        with open(os.path.join(output, name + ".1"), "w", encoding="utf-8") as file:
            file.write(page(name, shown, added, date, version))


if __name__ == "__main__":
    main()
