#!/usr/bin/env python3
"""Writes aerie.json, a description of src/api/aerie.h, and the native layers of the bindings that follow from it.

usage: generate.py [--check]

With --check nothing is written; the exit status is 1 if a file is not what it would be.

The header is regular C99: typedefs of enums, structs, handles and callbacks, functions with AERIE_API, macros with a
number. Everything else is an error, so that nothing is left out. Offsets are those of all systems with 64-bit pointers;
tests/bindings/description_test.py compares them with a compiler's.
"""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = os.path.join(HERE, os.pardir, "src", "api", "aerie.h")
SIZES = {"int32_t": 4, "uint32_t": 4, "int": 4, "float": 4, "int64_t": 8, "uint64_t": 8, "size_t": 8, "double": 8}
TOKEN = re.compile(r"/\*.*?\*/|[A-Za-z_]\w*|-?\d+|\S", re.S)
EDITED = "Written by bindings/generate.py from src/api/aerie.h. Do not edit."


def comment_text(comment):
    lines = [re.sub(r"^\s*\* ?", "", line).strip() for line in comment[2:-2].split("\n")]
    return " ".join(line for line in lines if line)


class Reader:
    """The tokens of the header, with the comments that belong to each."""

    def __init__(self, text):
        # Conditional parts are for compilers alone, and so are macros without a number.
        self.macros = [{"name": name, "value": int(value)} for name, value in
                       re.findall(r"^#define (AERIE_\w+) (-?\d+)$", text, re.M)]
        text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif$", "", text, flags=re.M | re.S)
        text = re.sub(r"^#define(?:\\\n|[^\n])*", "", text, flags=re.M)
        text = re.sub(r"^#[^\n]*", "", text, flags=re.M)
        text = re.sub(r"\bAERIE_DEFINE_INIT\(\w+\)", "", text)
        self.tokens = []
        for match in TOKEN.finditer(text):
            begin = text.count("\n", 0, match.start())
            self.tokens.append((match[0], begin, begin + match[0].count("\n")))
        self.at = 0

    def peek(self):
        return self.tokens[self.at][0] if self.at < len(self.tokens) else None

    def take(self, expected=None):
        token = self.tokens[self.at][0]
        if expected is not None and token != expected:
            sys.exit(f"aerie.h, near {' '.join(t[0] for t in self.tokens[self.at - 8:self.at + 3])!r}: no {expected!r}")
        self.at += 1
        return token

    def comments_before(self):
        """The text of the comment right before the next token; headings, and comments apart, are left out."""
        found = None
        while self.peek() and self.peek().startswith("/*"):
            token, _, end = self.tokens[self.at]
            self.at += 1
            adjacent = self.at < len(self.tokens) and self.tokens[self.at][1] == end + 1
            found = None if token.startswith("/* ----") or not adjacent else comment_text(token)
        return found

    def comment_behind(self):
        """The text of the comment that follows the newest token in its line."""
        if not (self.peek() or "").startswith("/*"):
            return None
        token, begin, _ = self.tokens[self.at]
        if begin != self.tokens[self.at - 1][2]:
            return None
        self.at += 1
        return comment_text(token)

    def until(self, *ends):
        taken = []
        while self.peek() not in ends:
            taken.append(self.take())
        return taken


def spelled(tokens):
    text = " ".join(tokens)
    return re.sub(r" \*", "*", text).replace("*const", "* const")


def declared(tokens):
    """(type, name) of a declaration: the name comes last."""
    return {"name": tokens[-1], "type": spelled(tokens[:-1])}


def parameters(reader):
    reader.take("(")
    found = []
    while reader.peek() != ")":
        tokens = reader.until(",", ")")
        if tokens != ["void"]:
            found.append(declared(tokens))
        if reader.peek() == ",":
            reader.take()
    reader.take(")")
    return found


def enum_values(reader):
    reader.take("{")
    values = []
    while reader.peek() != "}":
        before = reader.comments_before()
        name = reader.take()
        reader.take("=")
        value = int(reader.take())
        if reader.peek() == ",":
            reader.take()
        values.append({"name": name, "value": value, "doc": before or reader.comment_behind() or ""})
    reader.take("}")
    return values


def members(reader):
    reader.take("{")
    found = []
    while reader.peek() != "}":
        before = reader.comments_before()
        tokens = reader.until(",", ";")
        names = [tokens[-1]]
        while reader.peek() == ",":
            reader.take()
            names += reader.until(",", ";")
        reader.take(";")
        doc = reader.comment_behind() or before or ""
        found += [{"name": name, "type": spelled(tokens[:-1]), "doc": doc} for name in names]
    reader.take("}")
    return found


def lay_out(struct):
    end, align = 0, 1
    for member in struct["members"]:
        if "*" in member["type"] or member["type"].endswith("_callback"):
            size = 8
        else:
            size = SIZES[member["type"]]
        align = max(align, size)
        member["offset"] = (end + size - 1) // size * size
        member["size"] = size
        end = member["offset"] + size
    struct["size"] = (end + align - 1) // align * align


def described(text):
    """The description of a header."""
    reader = Reader(text)
    about = {"note": EDITED, "constants": reader.macros, "enums": [], "handles": [], "callbacks": [], "structs": [],
             "functions": []}
    for macro in about["constants"]:
        macro["doc"] = ""
    while reader.peek():
        doc = reader.comments_before()
        if not reader.peek():
            break
        if reader.peek() == "AERIE_API":
            reader.take()
            tokens = reader.until("(")
            function = {"name": tokens[-1], "returns": spelled(tokens[:-1]), "parameters": parameters(reader)}
            reader.take(";")
            about["functions"].append(dict(function, doc=doc or reader.comment_behind() or ""))
            continue
        if reader.peek() == "enum":
            reader.take()
            about["constants"] += enum_values(reader)
            reader.take(";")
            continue
        reader.take("typedef")
        if reader.peek() == "enum":
            reader.take()
            name = reader.take()
            values = enum_values(reader)
            reader.take(name)
            reader.take(";")
            about["enums"].append({"name": name, "doc": doc or "", "values": values})
        elif reader.peek() == "struct":
            reader.take()
            name = reader.take()
            if reader.peek() == "{":
                struct = {"name": name, "doc": doc or "", "members": members(reader)}
                lay_out(struct)
                about["structs"].append(struct)
                reader.take(name)
                reader.take(";")
            else:
                reader.take(name)
                reader.take(";")
                about["handles"].append({"name": name, "doc": reader.comment_behind() or doc or ""})
        else:
            returns = spelled(reader.until("("))
            reader.take("(")
            reader.take("*")
            name = reader.take()
            reader.take(")")
            callback = {"name": name, "returns": returns, "parameters": parameters(reader)}
            reader.take(";")
            about["callbacks"].append(dict(callback, doc=doc or ""))
    return about


def is_counted(owner, index):
    """Whether a text in a struct has its length behind it, so that it may hold NUL."""
    listed = owner["members"]
    name, follows = listed[index]["name"], listed[index + 1]["name"] if index + 1 < len(listed) else ""
    return listed[index]["type"] == "const char*" and follows in (name + "_bytes", name.rstrip("s") + "_count")


def short(name):
    return name.removeprefix("aerie_")


def class_name(name):
    return "".join(part.capitalize() for part in short(name).split("_"))


def prefix_of(enum):
    names = [value["name"] for value in enum["values"]]
    prefix = os.path.commonprefix(names)
    return "AERIE_" if enum["name"] in ("aerie_status", "aerie_origin") else prefix[:prefix.rindex("_") + 1]


# ---- Python -----------------------------------------------------------------------------------

CTYPES = {"int32_t": "c_int32", "uint32_t": "c_uint32", "int": "c_int", "float": "c_float", "int64_t": "c_int64",
          "uint64_t": "c_uint64", "size_t": "c_size_t", "double": "c_double", "const char*": "c_char_p", "void*": "c_void_p",
          "void": "None"}


def python_type(kind, about):
    if kind in CTYPES:
        return CTYPES[kind]
    bare = kind.removeprefix("const ")
    if bare.endswith("_callback"):
        return short(bare)
    if any(enum["name"] == bare for enum in about["enums"]):
        return "c_int"
    handles = [handle["name"] for handle in about["handles"]]
    if bare.rstrip("*") in handles:
        return "c_void_p" if bare.count("*") == 1 else "POINTER(c_void_p)"
    if kind == "char**":
        return "POINTER(c_void_p)"
    if kind == "int32_t**":
        return "POINTER(c_void_p)"
    if bare.endswith("* const*") or bare.endswith("**"):
        return f"POINTER({python_type('const ' + bare[:bare.index('*')] + '*', about)})"
    inner = bare[:-1]
    if any(struct["name"] == inner for struct in about["structs"]):
        return f"POINTER({short(inner)})"
    return f"POINTER({python_type(inner, about)})"


def python_layer(about):
    out = [f'"""The C library as ctypes sees it. {EDITED}"""',
           "from ctypes import (CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t,",
           "                    c_uint32, c_uint64, c_void_p)", "from enum import IntEnum", ""]
    for constant in about["constants"]:
        out.append(f"{constant['name'].removeprefix('AERIE_')} = {constant['value']}")
    for enum in about["enums"]:
        out += ["", "", f"class {class_name(enum['name'])}(IntEnum):", f'    """{enum["doc"] or enum["name"] + "."}"""']
        for value in enum["values"]:
            line = f"    {value['name'].removeprefix(prefix_of(enum))} = {value['value']}"
            out.append(line + (f"  # {value['doc']}" if value["doc"] else ""))
    declared_structs = set()
    out += ["", ""]
    # Structs that callbacks point to come before them, and callbacks before structs that hold them.
    def struct_lines(struct):
        declared_structs.add(struct["name"])
        lines = [f"class {short(struct['name'])}(Structure):", f'    """{struct["doc"] or struct["name"] + "."}"""',
                 "    _fields_ = ["]
        for index, member in enumerate(struct["members"]):
            kind = "c_void_p" if is_counted(struct, index) else python_type(member["type"], about)
            lines.append(f"        (\"{member['name']}\", {kind}),")
        return lines + ["    ]", "", ""]
    pending = list(about["structs"])
    callbacks = list(about["callbacks"])
    names = [struct["name"] for struct in about["structs"]]
    while pending or callbacks:
        before = len(pending) + len(callbacks)
        for callback in list(callbacks):
            needs = [name for name in names for p in callback["parameters"] if re.search(rf"\b{name}\b", p["type"])]
            if all(name in declared_structs for name in needs):
                kinds = ["POINTER(c_float)" if p["type"] == "float*" else python_type(p["type"], about)
                         for p in callback["parameters"]]
                out.append(f"{short(callback['name'])} = CFUNCTYPE({', '.join([python_type(callback['returns'], about)] + kinds)})")
                callbacks.remove(callback)
        for struct in list(pending):
            kinds = " ".join(member["type"] for member in struct["members"])
            if not any(re.search(rf"\b{other['name']}\b", kinds) for other in callbacks + [s for s in pending if s is not struct]):
                out += ([""] if not out[-1].startswith(("", "class")) else []) + struct_lines(struct)
                pending.remove(struct)
        if before == len(pending) + len(callbacks):
            sys.exit("aerie.h: structs and callbacks hold each other")
    out += ["SIZES = {"]
    out += [f"    {short(struct['name'])}: {struct['size']}," for struct in about["structs"]]
    out += ["}", "FUNCTIONS = {"]
    for function in about["functions"]:
        kinds = [python_type(p["type"], about) for p in function["parameters"]]
        listed = ", ".join(kinds)
        out.append(f"    \"{function['name']}\": ({python_type(function['returns'], about)}, [{listed}]),")
    out += ["}", "", "", "def declare(library):", '    """Tells ctypes what the functions of the library take and give."""',
            "    for name, (result, parameters) in FUNCTIONS.items():", "        function = getattr(library, name)",
            "        function.restype = result", "        function.argtypes = parameters", "    return library"]
    text = "\n".join(out) + "\n"
    return re.sub(r"\n{4,}", "\n\n\n", text)


# ---- Node -------------------------------------------------------------------------------------

def node_type(kind, about):
    bare = kind.removeprefix("const ")
    if kind == "const char*":
        return "str"
    if bare.endswith("_callback"):
        return bare + "*"
    if any(enum["name"] == bare for enum in about["enums"]):
        return "int"
    if kind == "const char* const*":
        return "str*"
    if bare.count("*") == 1 and (bare[:-1] in SIZES or bare[:-1] in [struct["name"] for struct in about["structs"]]):
        return bare
    return "void*" if "*" in bare else bare


def node_parameter(parameter, about):
    """The type of a parameter: structs go in and come back, single values come back."""
    kind = parameter["type"]
    bare = kind.removeprefix("const ")
    inner = bare.rstrip("*").strip()
    handles = [handle["name"] for handle in about["handles"]]
    structs = [struct["name"] for struct in about["structs"]]
    if inner in handles:
        return "void*" if bare.count("*") == 1 else "_Out_ void**"
    if inner in structs:
        return f"{'' if kind.startswith('const') else '_Inout_ '}{inner}*"
    if kind in ("size_t*", "int32_t*"):
        return f"_Out_ {kind}"
    if kind == "aerie_cause*":
        return "_Out_ int*"
    if kind in ("char**", "int32_t**", "const char**", "const int32_t**"):
        return "_Out_ void**"
    return node_type(kind, about)


def node_layer(about):
    out = [f"// The C library as koffi sees it. {EDITED}", 'import koffi from "koffi";', ""]
    for constant in about["constants"]:
        out.append(f"export const {constant['name'].removeprefix('AERIE_')} = {constant['value']};")
    for enum in about["enums"]:
        values = ", ".join(f"{value['name'].removeprefix(prefix_of(enum))}: {value['value']}" for value in enum["values"])
        out.append(f"export const {class_name(enum['name'])} = Object.freeze({{ {values} }});")
    out.append("")
    out.append("export const callbacks = {")
    for callback in about["callbacks"]:
        # Callbacks are declared before structs, so they get the addresses of these.
        kinds = ", ".join(f"{'void*' if '*' in p['type'] and p['type'] != 'const char*' else node_type(p['type'], about)} {p['name']}"
                          for p in callback["parameters"])
        out.append(f"  {short(callback['name'])}: koffi.proto(\"{callback['returns']} {callback['name']}({kinds})\"),")
    out += ["};", "", "export const structs = {"]
    for struct in about["structs"]:
        out.append(f"  {short(struct['name'])}: koffi.struct(\"{struct['name']}\", {{")
        for index, member in enumerate(struct["members"]):
            kind = "void*" if is_counted(struct, index) else node_type(member["type"], about)
            out.append(f"    {member['name']}: \"{kind}\",")
        out.append("  }),")
    out += ["};", "", "const prototypes = ["]
    for function in about["functions"]:
        kinds = ", ".join(f"{node_parameter(p, about)} {p['name']}" for p in function["parameters"])
        out.append(f"  \"{node_type(function['returns'], about)} {function['name']}({kinds})\",")
    out += ["];", "",
            "// The size of each struct, as the header says; a binding for another system would differ.",
            "export const sizes = {"]
    out += [f"  {short(struct['name'])}: {struct['size']}," for struct in about["structs"]]
    out += ["};", "", "// The functions of the library under their names without aerie_.", "export function functions(library) {",
            "  const found = {};", "  for (const prototype of prototypes)",
            "    found[/ aerie_(\\w+)\\(/.exec(prototype)[1]] = library.func(prototype);", "  return found;", "}"]
    return "\n".join(out) + "\n"


# Structs that programs see as objects, and members that are seen in another way: lists without their lengths, names.
SHOWN = {"aerie_device": {"kind": "DeviceKind"}, "aerie_listed_model": {"heads": "string[]"}, "aerie_forecast": {},
         "aerie_model_info": {"eos_ids": "number[]", "eos_count": None}, "aerie_sampling": {},
         "aerie_statistics": {"accepted_by_depth": "number[]", "depth_count": None}}


def is_flag(member):
    return member["type"] == "int32_t" and (member["name"].startswith(("is_", "can_", "has_")) or member["name"] == "fits")


def camel(name):
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def documented(doc, indent=""):
    return [f"{indent}/** {doc.replace('*/', '')} */"] if doc else []


def node_types(about):
    """TypeScript's view: enums are unions of names, structs are interfaces."""
    out = [f"// {EDITED}"]
    for enum in about["enums"]:
        if enum["name"] in ("aerie_status", "aerie_log_level"):
            continue
        names = [value["name"].removeprefix(prefix_of(enum)) for value in enum["values"]]
        if enum["name"] != "aerie_cause":
            names = [name.lower() for name in names]
        out += [""] + documented(enum["doc"]) + [f"export type {class_name(enum['name'])} ="]
        for value, name in zip(enum["values"], names):
            out += documented(value["doc"], "  ") + [f'  | "{name}"']
        out[-1] += ";"
    for struct in about["structs"]:
        special = SHOWN.get(struct["name"])
        if special is None:
            continue
        out += [""] + documented(struct["doc"]) + [f"export interface {class_name(struct['name'])} {{"]
        for member in struct["members"][1:]:
            kind = special.get(member["name"], "string" if "char*" in member["type"] else "boolean" if is_flag(member) else "number")
            if kind:
                out += documented(member["doc"], "  ") + [f"  {camel(member['name'])}: {kind};"]
        out.append("}")
    return "\n".join(out) + "\n"


def files(about):
    """The path of each file and what it shall hold."""
    return {os.path.join(HERE, "aerie.json"): json.dumps(about, indent=1) + "\n",
            os.path.join(HERE, "python", "aerie", "_native.py"): python_layer(about),
            os.path.join(HERE, "node", "native.js"): node_layer(about),
            os.path.join(HERE, "node", "native.d.ts"): node_types(about)}


def main():
    with open(HEADER, encoding="utf-8") as file:
        wanted = files(described(file.read()))
    stale = []
    for path, text in wanted.items():
        have = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                have = file.read()
        if have == text:
            continue
        stale.append(os.path.relpath(path))
        if "--check" not in sys.argv:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    if stale and "--check" in sys.argv:
        sys.exit(f"{', '.join(stale)}: not what src/api/aerie.h says; run bindings/generate.py")
    print(f"{len(wanted)} files, {len(stale)} {'differ' if '--check' in sys.argv else 'written'}")


if __name__ == "__main__":
    main()
