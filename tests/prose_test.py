#!/usr/bin/env python3
"""Comments are full sentences in the words of docs/glossary.md, and cite what exists.

usage: prose_test.py REPOSITORY [FOLDER]...

No sentence of a comment begins with Of, That, Those, Who, Whose or What. No comment or name has a word that the
glossary retires outright. A page that a comment cites exists, and has the section. The docstrings of Python count as
comments. With folders, only files in them are read.
`--count` prints how many fragments each folder has, and fails for none.
"""
import ast
import collections
import os
import re
import sys

from repository_files import repository_files

CODE = (".h", ".hpp", ".cpp", ".c", ".cu", ".cuh", ".comp", ".glsl", ".in")
SCRIPTS = (".py", ".sh", ".cmake", "CMakeLists.txt")
FRAGMENT = re.compile(r"(?:^|(?<=[.;:!?]) +)(Of|That|Those|Who|Whose|What)\b(?!')", re.M)
BEGINNING = re.compile(r"^(of|that|those|who|whose|what)\b", re.I)
CITED = re.compile(r"([\w./-]+\.md)(?: sections? (\d+)(?:(?:,| and) (\d+))*)?")


def comments_of_code(text):
    """(line, comment) of C-like text: neighbouring lines of // are one comment."""
    token = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.S)
    found, newest = [], None
    for match in token.finditer(text):
        if match[0][0] in "\"'":
            continue
        line = text.count("\n", 0, match.start()) + 1
        before = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        is_line, alone = match[0].startswith("//"), not before.strip()
        body = match[0][2:].strip() if is_line else re.sub(r"\s*\n\s*\*?\s*", " ", match[0][2:-2]).strip()
        # A comment behind code goes on below in its own column.
        if is_line and alone and newest and newest[0] == line - 1 and (newest[1] or newest[2] == len(before)):
            found[-1][1] += " " + body
        else:
            found.append([line, body])
        newest = (line, alone, len(before))
    return found


def comments_of_scripts(text):
    found, newest = [], None
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r"^\s*#(?!!)\s?(.*)", line)
        if not match:
            continue
        if newest == number - 1:
            found[-1][1] += " " + match[1].strip()
        else:
            found.append([number, match[1].strip()])
        newest = number
    return found


def docstrings(text):
    """[line, paragraph] of the docstrings of a Python module, of its classes and of its functions."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            shown = ast.get_docstring(node, clean=False) or ""
            for match in re.finditer(r"[^\n]*\S[^\n]*(?:\n[^\n]*\S[^\n]*)*", shown):
                found.append([node.body[0].lineno + shown.count("\n", 0, match.start()), " ".join(match[0].split())])
    return sorted(found)


def comments(path, text):
    if not path.endswith(SCRIPTS):
        return comments_of_code(text)
    return comments_of_scripts(text) + (docstrings(text) if path.endswith(".py") else [])


def fragments(comment):
    hits = [match[1] for match in FRAGMENT.finditer(comment)]
    return hits or ([comment.split()[0]] if BEGINNING.match(comment) else [])


def dead(comment, path, root):
    lost = []
    for name, *sections in CITED.findall(comment):
        places = [os.path.join(root, folder, name) for folder in ("", "docs", os.path.dirname(path))]
        page = next((place for place in places if os.path.exists(place)), None)
        if not page:
            lost.append(name)
            continue
        with open(page, encoding="utf-8") as file:
            numbers = set(re.findall(r"^#+ (\d+)\.", file.read(), re.M))
        lost += [f"{name} section {number}" for number in sections if number and number not in numbers]
    return lost


def retired(root):
    with open(os.path.join(root, "docs", "glossary.md"), encoding="utf-8") as page:
        match = re.search(r"^Retired outright: (.*?)\.$", page.read(), re.M | re.S)
    return re.findall(r"`(\w+)`", match[1])


def main():
    root, folders = sys.argv[1], [name for name in sys.argv[2:] if not name.startswith("--")]
    words = retired(root)
    assert len(words) >= 5, "the glossary retires no words"
    assert fragments("Of a row, that it sees") and fragments("true; What follows") and not fragments("The row of a tile")
    planted = 'class C:\n    def f(self):\n        """Clear.\n\n        A row. Of the\n        tile."""\n'
    assert comments("c.py", planted) == [[3, "Clear."], [5, "A row. Of the tile."]] and comments("c.sh", planted) == []
    assert dead("see no_such.md section 1", "src/x.h", root) and dead("drafting.md section 77", "src/x.h", root)
    word = re.compile(r"(?<![A-Za-z])(" + "|".join(words) + r")s?(?![A-Za-z])", re.I)
    assert word.search("the clerk_") and not word.search("marshall")
    listed = repository_files(root)
    faults, counts, read = [], collections.Counter(), 0
    for path in listed:
        if not path.endswith(CODE + SCRIPTS) or "/data/" in path or path.startswith(("models/", "tests/prose_test.py")):
            continue
        if folders and not path.startswith(tuple(folders)) or not os.path.exists(os.path.join(root, path)):
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        read += 1
        for match in word.finditer(text):
            faults.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: retired word {match[1]}")
        for line, comment in comments(path, text):
            for first in fragments(comment):
                counts[os.path.dirname(path)] += 1
                faults.append(f"{path}:{line}: a sentence begins with {first}: {comment[:90]}")
            faults += [f"{path}:{line}: cites {name}, which is not there" for name in dead(comment, path, root)]
    if "--count" in sys.argv:
        for folder, count in sorted(counts.items()):
            print(f"{count:5} {folder}")
    assert read >= (1 if folders else 500), f"only {read} files were read"
    print("\n".join(faults) if faults else f"{read} files, no fault")
    sys.exit(bool(faults) and "--count" not in sys.argv)


main()
