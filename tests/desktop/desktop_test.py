#!/usr/bin/env python3
"""examples/desktop, built outside the tree on an installed aerie, driven under Xvfb: it answers as `aerie chat` does,
and its window never blocks.

usage: desktop_test.py SOURCE-FOLDER BUILD-FOLDER [--sanitize]

Pictures of the window go to BUILD-FOLDER/desktop. With --sanitize the program is built with AddressSanitizer.
"""
import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
QUESTIONS = ["Tell me about the sea.", "And what lives in it?", "Natalia has 3 apples and buys 5 more. How many?"]
# A model so large that one step takes longer than the interval at which the worker updates the window.
SLOW = ["--like", "aerie-tiny", "--hidden", "1024", "--intermediate", "4096", "--heads", "16", "--kv-heads", "4",
        "--layers", "8"]
SITTINGS = [  # each row is one start of the program: the slots of the driver, the model to start with ("": none)
    ("devices bad_model load_tiny talk_drafted goes_on talk_plain outgrow_context close", [""]),
    ("loaded_at_start load_slow stop stop_reading cancel_loading close_loading", ["aerie-tiny"]),
    ("load_slow close_answering", [""]),
]


def output(*command, **more):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    text = done.stdout.decode(errors="replace")
    if done.returncode != 0 and 'provided by "Qt6"' in text:
        skip("no Qt 6")
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.returncode}\n{text}")
    return text


def skip(what):
    print(f"Skipped: {what} (see scripts/setup.sh --desktop)")
    sys.exit(SKIPPED)


def built(source, build, prefix, flags):
    output("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release",
           f"-DCMAKE_CXX_FLAGS={flags}")
    output("cmake", "--build", build, "-j2")
    return build


def talk(aerie, folder, around):
    """Asks QUESTIONS in `aerie chat` and saves the conversation. Returns the path of its file."""
    stored = os.path.join(folder, "talk")
    typed = "".join(question + "\n" for question in QUESTIONS) + f"/save {stored}\n"
    output(aerie, "chat", "-m", "aerie-tiny", input=typed.encode(), env=around)
    return stored + ".json"


def main():
    source, build = map(os.path.abspath, sys.argv[1:3])
    sanitize = "--sanitize" in sys.argv
    if not shutil.which("xvfb-run"):
        skip("no Xvfb")
    folder = tempfile.mkdtemp(prefix="aerie_desktop_")
    shots = os.path.join(build, "desktop")
    os.makedirs(shots, exist_ok=True)
    try:
        prefix = os.path.join(folder, "prefix")
        output("cmake", "--install", build, "--prefix", prefix)
        flags = "-Wall -Wextra -Werror" + (" -g -fsanitize=address" if sanitize else "")
        program = os.path.join(built(os.path.join(source, "examples", "desktop"), os.path.join(folder, "program"),
                                     prefix, flags), "aerie-desktop")
        driver = os.path.join(built(os.path.join(source, "tests", "desktop", "driver"), os.path.join(folder, "driver"),
                                    prefix, ""), "libdriver.so")
        aerie = os.path.join(prefix, "bin", "aerie")
        around = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"), XDG_RUNTIME_DIR=folder)
        slow = os.path.join(folder, "slow")
        output(aerie, "synth", *SLOW, "-q", "-o", slow, env=around)
        around.update(TALK=talk(aerie, folder, around), SLOW=slow, SHOTS=shots,
                      ASAN_OPTIONS="detect_leaks=0", QT_LOGGING_RULES="")
        first = output("c++", "-print-file-name=libasan.so").strip() + ":" if sanitize else ""
        for deeds, arguments in SITTINGS:
            print(output("xvfb-run", "-a", "-s", "-screen 0 1280x900x24", "env", f"LD_PRELOAD={first}{driver}",
                         f"DRIVE={deeds}", program, *arguments, env=around), flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
