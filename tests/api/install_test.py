#!/usr/bin/env python3
"""Programs outside the tree build against an installed aerie, wherever it was moved to, and say what `aerie generate`
says.

usage: install_test.py SOURCE-FOLDER BUILD-FOLDER
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
TOKENS = "64"  # the number that examples/minimal.c asks for


def output(*command, **more):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}:\n{(done.stdout + done.stderr).decode(errors='replace')}")
    return done.stdout.decode()


def install(build, folder):
    """The moved prefix, and the folder that holds its libraries."""
    output("cmake", "--install", build, "--prefix", os.path.join(folder, "first"))
    prefix = os.path.join(folder, "moved")
    os.rename(os.path.join(folder, "first"), prefix)
    for root, _, files in os.walk(prefix):
        if "aerie.pc" in files:
            return prefix, os.path.dirname(root)
    sys.exit("no aerie.pc was installed")


def knows(file, folder):
    """Whether an installed file names the folder in which it was built, or a place of its own to look for libraries."""
    with open(file, "rb") as opened:
        content = opened.read()
    if content.startswith(b"\x7fELF") and b"PATH)" in subprocess.check_output(["readelf", "-d", file]):
        return True
    # The folder's name does not count if it is part of a longer one, as in share/aerie.
    return re.search(rb"(?<![\w.-])" + re.escape(folder.encode()) + rb"(?![\w.-])", content) is not None


def check_stage(source, build, folder):
    """DESTDIR stands before all places, and nothing that was installed knows where it was built."""
    stage = os.path.join(folder, "stage")
    output("cmake", "--install", build, env=dict(os.environ, DESTDIR=stage))
    files = [os.path.join(root, name) for root, _, names in os.walk(stage) for name in names]
    wanted = {"bin/aerie", "include/aerie.h", "include/aerie.hpp", "pkgconfig/aerie.pc", "aerie/aerieConfig.cmake",
              "libaerie.a", "libaerie.so", "man3/aerie.3", "aerie/LICENSE", "aerie/embedding.md",
              "models/README.md", "models/aerie-tiny/model.safetensors", "aerie/acceptance.txt"}
    if os.path.isdir(os.path.join(build, "man")):
        wanted |= {"man1/aerie.1", "man1/aerie-generate.1"}
    missing = [name for name in sorted(wanted) if not any(file.endswith("/" + name) for file in files)]
    if missing:
        sys.exit(f"DESTDIR: {', '.join(missing)} missing")
    if not knows(os.path.join(build, "CMakeCache.txt"), source):
        sys.exit("the test itself is wrong: a folder in a file is not found")
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as cache:
        if "CMAKE_BUILD_TYPE:STRING=Release\n" not in cache.read():
            return  # asserts contain the names of their files
    knowing = [file for file in files if knows(file, source)]
    if knowing:
        sys.exit(f"these know where they were built, {source}: {', '.join(knowing)}")


def check_header(prefix, folder):
    program = os.path.join(folder, "header.c")
    with open(program, "w", encoding="utf-8") as file:
        file.write("#include <aerie.h>\nint main(void) { return aerie_step_init().size == 0; }\n")
    for compiler in (["cc", "-std=c99"], ["cc", "-std=c17"], ["c++", "-std=c++17", "-x", "c++"],
                     ["c++", "-std=c++20", "-x", "c++"]):
        output(*compiler, *STRICT, "-I", os.path.join(prefix, "include"), "-fsyntax-only", program)


def configured(source, build, prefix, *more):
    output("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release", *more)
    output("cmake", "--build", build)
    return build


def flags_of(prefix, libraries):
    search = dict(os.environ, PKG_CONFIG_PATH=os.path.join(libraries, "pkgconfig"))
    flags = output("pkg-config", "--cflags", "--libs", "aerie", env=search).split()
    if not any(flag.startswith("-I" + prefix) or "moved" in flag for flag in flags):
        sys.exit(f"aerie.pc does not follow its prefix: {flags}")
    return flags


def with_pkg_config(source, flags, folder):
    program = os.path.join(folder, "minimal_pc")
    output("cc", "-std=c99", *STRICT, os.path.join(source, "examples", "minimal.c"), *flags, "-o", program)
    stream = os.path.join(folder, "stream_pc")
    output("c++", "-std=c++17", *STRICT, os.path.join(source, "examples", "stream.cpp"), *flags, "-o", stream)
    return program, stream


def golden_prompts(source):
    with open(os.path.join(source, "tests", "data", "greedy.json"), encoding="utf-8") as file:
        return [entry["prompt"] for entry in json.load(file)][:4]


def check_embedding_program(source, prefix, libraries, folder):
    """The program that docs/embedding.md shows is built and started as the page says, with nothing else set."""
    with open(os.path.join(source, "docs", "embedding.md"), encoding="utf-8") as file:
        page = file.read()
    with open(os.path.join(folder, "program.c"), "w", encoding="utf-8") as file:
        file.write(page.split("```c\n")[1].split("```")[0])
    lines = page.split("```sh\n")[1].split("```")[0].splitlines()
    begin = ["PREFIX=", "cmake ", "export PKG_CONFIG_PATH=", "cc program.c ", "./program"]
    if len(lines) != len(begin) or not all(line.startswith(wanted) for line, wanted in zip(lines, begin)):
        sys.exit(f"docs/embedding.md: another block than this test knows: {lines}")
    around = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "PKG_CONFIG_PATH")}
    around.update(XDG_CACHE_HOME=os.path.join(folder, "cache"), PREFIX=prefix)
    # The library's folder has another name on some systems.
    script = lines[2].replace('"$PREFIX/lib/pkgconfig"', f"'{libraries}/pkgconfig'")
    built = lines[3].replace("cc ", f"cc -std=c99 {' '.join(STRICT)} ", 1)
    shown = output("sh", "-c", "\n".join(["set -e", script, built, lines[4]]), cwd=folder, env=around)
    kept = re.search(r"^(\d+) of (\d+) tokens of the prompt were kept$", shown, re.M)
    if " ...\n" not in shown or not kept or not 10 < int(kept[1]) < int(kept[2]):
        sys.exit(f"the program of docs/embedding.md says {shown!r}")


def main():
    source, build = map(os.path.abspath, sys.argv[1:])
    folder = tempfile.mkdtemp(prefix="aerie_install_")
    try:
        check_stage(source, build, folder)
        prefix, libraries = install(build, folder)
        check_header(prefix, folder)
        examples = os.path.join(source, "examples")
        by_package = configured(examples, os.path.join(folder, "examples"), prefix)
        programs = [os.path.join(by_package, "minimal")]
        outside = os.path.join(source, "tests", "api", "outside")
        by_archive = configured(outside, os.path.join(folder, "outside"), prefix, f"-DEXAMPLES={examples}")
        programs.append(os.path.join(by_archive, "minimal_static"))
        flags = flags_of(prefix, libraries)
        pc_minimal, pc_stream = with_pkg_config(source, flags, folder)
        programs.append(pc_minimal)
        around = dict(os.environ, LD_LIBRARY_PATH=libraries, XDG_CACHE_HOME=os.path.join(folder, "cache"))
        prompts = golden_prompts(source)
        bundled = os.path.join(prefix, "share", "aerie", "models", "aerie-tiny")
        for prompt in prompts:
            want = output(os.path.join(prefix, "bin", "aerie"), "generate", "-m", "aerie-tiny", "-p", prompt, "-n",
                          TOKENS, "-q", cwd=folder, env=around)
            for program in programs:
                # The shared library finds models beside itself; an archive does not know its own place.
                model = bundled if program.endswith("_static") else "aerie-tiny"
                got = output(program, model, prompt, cwd=folder, env=around)
                if got != want or len(want) < 10:
                    sys.exit(f"{program} says {got!r}, aerie generate {want!r}")
        check_embedding_program(source, prefix, libraries, folder)
        for stream in (os.path.join(by_package, "stream"), pc_stream):
            done = subprocess.run([stream], cwd=folder, env=around, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if done.returncode != 0 or os.path.join(prefix, "share") not in done.stderr.decode():
                sys.exit(f"{stream}: {done.returncode}, {done.stderr.decode()}")
        print(f"{len(programs)} programs, {len(prompts)} prompts: the texts of aerie generate")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
