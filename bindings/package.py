#!/usr/bin/env python3
"""Makes packages that hold the library: a wheel for Python, a tarball for npm. Needs no network.

usage: package.py wheel|npm|libraries LIBRARY FOLDER [--models NAME,NAME...]

LIBRARY is the built libaerie.so, FOLDER receives the package, whose path is printed. The models are taken from the
folder `models`; aerie-tiny and its head if none are named, and with `--models none` none. Libraries that a bare system
lacks are packed with it; `libraries` copies these alone, for a program, too. The npm package contains koffi from bindings/node/node_modules (npm ci).
"""
import argparse
import base64
import glob
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
# Every system with Python or Node has these; the tag of the wheel says how new its C library must be.
SYSTEM = re.compile(r"^(linux-vdso|ld-linux.*|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)\.so")


def version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"project\(aerie VERSION (\S+)", file.read())[1]


def needed(library):
    """(name, path) of the libraries beyond a bare system's that a library needs."""
    listed = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout
    found = []
    for line in listed.splitlines():
        name = os.path.basename(line.split()[0])
        if SYSTEM.match(name):
            continue
        match = re.search(r"=> (/\S+)", line)
        if not match:
            sys.exit(f"package: {library} needs {name}, which is not here")
        found.append((name, match[1]))
    return found


def licences(names):
    """Texts that must go with other people's libraries, as Debian's packages have them."""
    for name in names:
        stem = name.split(".so")[0]
        for place in glob.glob(f"/usr/share/doc/{stem}*/copyright"):
            yield name, place
            break
        else:
            print(f"package: no licence of {name} is at hand", file=sys.stderr)


def copy_needed(library, lib):
    """Copies the libraries that a bare system lacks into a folder, with their licences."""
    others = needed(library)
    for name, path in others:
        shutil.copy(os.path.realpath(path), os.path.join(lib, name))
    for name, place in licences([name for name, _ in others]):
        shutil.copy(place, os.path.join(lib, f"LICENSE.{name.split('.so')[0]}"))


def copy_library(library, models, folder):
    """The folder `lib` of a package: libraries, their licences, models."""
    lib = os.path.join(folder, "lib")
    os.makedirs(lib)
    shutil.copy(os.path.realpath(library), os.path.join(lib, "libaerie.so.0"))
    copy_needed(library, lib)
    for name in models:
        found = [path for path in glob.glob(os.path.join(ROOT, "models", name + "*")) if
                 os.path.basename(path) in (name, name + ".gguf", name + ".LICENSE")]
        if not found:
            sys.exit(f"package: no model {name} in {os.path.join(ROOT, 'models')}")
        os.makedirs(os.path.join(lib, "models"), exist_ok=True)
        for path in found:
            copy = shutil.copytree if os.path.isdir(path) else shutil.copy
            copy(path, os.path.join(lib, "models", os.path.basename(path)))
    if models:
        shutil.copy(os.path.join(ROOT, "models", "README.md"), os.path.join(lib, "models"))


def tag():
    """The platform of a wheel: this system's C library or newer, since newer symbols may be used."""
    name, libc = platform.libc_ver()
    machine = platform.machine()
    return f"manylinux_{libc.replace('.', '_')}_{machine}" if name == "glibc" else f"linux_{machine}"


def files_below(folder):
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(root, name)
            yield os.path.relpath(path, folder), path


def wheel(library, models, out):
    with tempfile.TemporaryDirectory() as stage:
        package = os.path.join(stage, "aerie")
        shutil.copytree(os.path.join(HERE, "python", "aerie"), package, ignore=shutil.ignore_patterns("__pycache__"))
        copy_library(library, models, package)
        about = os.path.join(stage, f"aerie-{version()}.dist-info")
        os.makedirs(about)
        with open(os.path.join(HERE, "python", "README.md"), encoding="utf-8") as file:
            readme = file.read()
        with open(os.path.join(about, "METADATA"), "w", encoding="utf-8") as file:
            file.write(f"Metadata-Version: 2.1\nName: aerie\nVersion: {version()}\n"
                       "Summary: Language models with speculative decoding, in your process\n"
                       "License: Apache-2.0\nRequires-Python: >=3.9\n"
                       f"Description-Content-Type: text/markdown\n\n{readme}")
        with open(os.path.join(about, "WHEEL"), "w", encoding="utf-8") as file:
            file.write(f"Wheel-Version: 1.0\nGenerator: aerie\nRoot-Is-Purelib: false\nTag: py3-none-{tag()}\n")
        shutil.copy(os.path.join(ROOT, "LICENSE"), about)
        record = []
        path = os.path.join(out, f"aerie-{version()}-py3-none-{tag()}.whl")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as packed:
            def add(name, content, mode):
                entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
                entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
                packed.writestr(entry, content)
            for name, place in files_below(stage):
                with open(place, "rb") as file:
                    content = file.read()
                digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                record.append(f"{name},sha256={digest},{len(content)}")
                add(name, content, 0o755 if ".so" in name else 0o644)
            own = f"aerie-{version()}.dist-info/RECORD"
            add(own, "\n".join(record + [f"{own},,"]) + "\n", 0o644)
    return path


def without_scripts(path):
    """Takes the scripts out of a package.json: koffi's would look for the sources to build its binary."""
    with open(path, encoding="utf-8") as file:
        about = json.load(file)
    about.pop("scripts", None)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(about, file, indent=2)


def npm(library, models, out):
    modules = os.path.join(HERE, "node", "node_modules")
    if not os.path.isdir(os.path.join(modules, "koffi")):
        sys.exit("package: no koffi; run npm ci in bindings/node")
    with tempfile.TemporaryDirectory() as stage:
        with open(os.path.join(HERE, "node", "package.json"), encoding="utf-8") as file:
            about = json.load(file)
        about["version"] = version()
        about.pop("devDependencies")
        for name in about["files"]:
            path = os.path.join(HERE, "node", name)
            if os.path.isfile(path):
                shutil.copy(path, stage)
        copy_library(library, models, stage)
        # koffi without the sources of its binary, and the binary for this system.
        for path in glob.glob(os.path.join(modules, "**", "package.json"), recursive=True):
            name = os.path.relpath(os.path.dirname(path), modules)
            if name == "koffi" or name.startswith("@koromix/"):
                shutil.copytree(os.path.dirname(path), os.path.join(stage, "node_modules", name),
                                ignore=shutil.ignore_patterns("*.cc", "*.hh", "*.inc", "vendor", "doc", "node_modules"), dirs_exist_ok=True)
        without_scripts(os.path.join(stage, "node_modules", "koffi", "package.json"))
        with open(os.path.join(stage, "package.json"), "w", encoding="utf-8") as file:
            json.dump(about, file, indent=2)
        shutil.copy(os.path.join(ROOT, "LICENSE"), stage)
        done = subprocess.run(["npm", "pack", "--json", "--ignore-scripts", "--pack-destination", os.path.abspath(out)],
                              cwd=stage, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        return os.path.join(out, json.loads(done.stdout)[0]["filename"])


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("kind", choices=["wheel", "npm", "libraries"])
    parser.add_argument("library")
    parser.add_argument("folder")
    parser.add_argument("--models", default="aerie-tiny,aerie-tiny-eagle")
    given = parser.parse_args()
    os.makedirs(given.folder, exist_ok=True)
    if given.kind == "libraries":
        copy_needed(given.library, given.folder)
        return
    models = [] if given.models == "none" else given.models.split(",")
    print((wheel if given.kind == "wheel" else npm)(given.library, models, given.folder))


if __name__ == "__main__":
    main()
