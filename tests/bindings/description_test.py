#!/usr/bin/env python3
"""bindings/aerie.json and what follows from it are what the header says, and what a compiler makes of it.

usage: description_test.py REPOSITORY LIBRARY
"""
import json
import os
import re
import subprocess
import sys
import tempfile

# The names of the functions are compared with what the library shows, so that the parser leaves none out.
MIN_FUNCTIONS = 50


def planted(repository):
    """A header of one of each kind is read as it should be."""
    sys.path.insert(0, os.path.join(repository, "bindings"))
    import generate
    about = generate.described('''
/* apart */

#define AERIE_N 3
/* Some
 * kind. */
typedef enum aerie_kind { AERIE_A = 0, /* first */ AERIE_B = 1 } aerie_kind;
typedef struct aerie_thing aerie_thing; /* a handle */
typedef int (*aerie_call)(void* user, const char* stage);
typedef struct aerie_pair {
    int32_t a, b; /* two */
    /* Before. */
    const char* const* names;
    int32_t c;
} aerie_pair;
AERIE_API const char* aerie_name(const aerie_thing* thing, size_t at); /* the name */
''')
    assert about["constants"] == [{"name": "AERIE_N", "value": 3, "doc": ""}], about
    assert about["enums"][0]["doc"] == "Some kind." and about["enums"][0]["values"][0]["doc"] == "first", about
    assert about["handles"] == [{"name": "aerie_thing", "doc": "a handle"}], about
    assert [p["type"] for p in about["callbacks"][0]["parameters"]] == ["void*", "const char*"], about
    pair = about["structs"][0]
    assert [(m["name"], m["offset"], m["doc"]) for m in pair["members"]] == [
        ("a", 0, "two"), ("b", 4, "two"), ("names", 8, "Before."), ("c", 16, "")] and pair["size"] == 24, pair
    assert pair["members"][2]["type"] == "const char* const*", pair
    assert about["functions"][0] == {"name": "aerie_name", "returns": "const char*", "doc": "the name", "parameters": [
        {"name": "thing", "type": "const aerie_thing*"}, {"name": "at", "type": "size_t"}]}, about


def checks(about):
    """C11 that compiles only if the description is right."""
    lines = ['#include "aerie.h"', "#include <stddef.h>"]
    for constant in about["constants"]:
        lines.append(f"_Static_assert({constant['name']} == {constant['value']}, \"\");")
    for enum in about["enums"]:
        lines += [f"_Static_assert({value['name']} == {value['value']}, \"\");" for value in enum["values"]]
    for struct in about["structs"]:
        lines.append(f"_Static_assert(sizeof({struct['name']}) == {struct['size']}, \"{struct['name']}\");")
        for member in struct["members"]:
            at = f"{struct['name']}, {member['name']}"
            lines.append(f"_Static_assert(offsetof({at}) == {member['offset']}, \"{at}\");")
            lines.append(f"_Static_assert(_Generic((({struct['name']}*)0)->{member['name']}, {member['type']}: 1, default: 0), \"{at}\");")
    for callback in about["callbacks"]:
        kinds = ", ".join(p["type"] for p in callback["parameters"])
        lines.append(f"_Static_assert(_Generic(({callback['name']})0, {callback['returns']} (*)({kinds}): 1, default: 0), \"{callback['name']}\");")
    for function in about["functions"]:
        kinds = ", ".join(p["type"] for p in function["parameters"]) or "void"
        lines.append(f"_Static_assert(_Generic(&{function['name']}, {function['returns']} (*)({kinds}): 1, default: 0), \"{function['name']}\");")
    return "\n".join(lines) + "\n"


def compiles(repository, folder, text):
    path = os.path.join(folder, "check.c")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run(["cc", "-std=c11", "-fsyntax-only", "-I", os.path.join(repository, "src", "api"), path],
                          capture_output=True, text=True)
    return done.returncode == 0, done.stderr


def main():
    repository, library = sys.argv[1:]
    planted(repository)
    generated = subprocess.run([sys.executable, os.path.join(repository, "bindings", "generate.py"), "--check"],
                               capture_output=True, text=True)
    if generated.returncode != 0:
        sys.exit(generated.stderr)
    with open(os.path.join(repository, "bindings", "aerie.json"), encoding="utf-8") as file:
        about = json.load(file)
    with tempfile.TemporaryDirectory() as folder:
        text = checks(about)
        good, said = compiles(repository, folder, text)
        if not good:
            sys.exit(said)
        wrong = text.replace("offsetof(aerie_answer, finish) == ", "offsetof(aerie_answer, finish) == 1")
        assert wrong != text and not compiles(repository, folder, wrong)[0], "a planted fault is not found"
    shown = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    exported = set(re.findall(r" T (aerie_\w+)", shown))
    described = {function["name"] for function in about["functions"]}
    if exported != described:
        sys.exit(f"described or exported, and not both: {', '.join(sorted(exported ^ described))}")
    assert len(described) >= MIN_FUNCTIONS
    print(f"{len(described)} functions, {len(about['structs'])} structs: as the compiler has them")


main()
