#!/usr/bin/env python3
"""The npm package installs without a network where nothing else of aerie is; its README's program and its types work.

usage: tarball_test.py REPOSITORY LIBRARY

Needs npm, and koffi and TypeScript in bindings/node (npm ci there); without them the test is skipped (exit status 77).
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

REPOSITORY, LIBRARY = map(os.path.abspath, sys.argv[1:3])
USE = """import { Model, AerieError, type Piece, type Cause, models } from "aerie";
const model: Model = await Model.open("aerie-tiny", { tree: [12, 4, 4], onProgress: (stage, done, total) => done < total || undefined });
const answer = (await model.session()).stream([{ role: "user", content: "x" }], { maxTokens: 4, signal: AbortSignal.timeout(9) });
for await (const piece of answer) { const one: Piece = piece; const drafted: boolean = one.tokens[0].drafted; }
const finish: "stop" | "length" | "none" | "cancelled" | "failed" = answer.finish;
const eos: number[] = model.info.eosIds;
try { models("x"); } catch (error) { if (error instanceof AerieError) { const code: Cause | "CLOSED" = error.code; } }
// @ts-expect-error
model.info.noSuchMember;
// @ts-expect-error
model.open("x");
"""


def output(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_types(folder):
    tsc = os.path.join(REPOSITORY, "bindings", "node", "node_modules", ".bin", "tsc")
    with open(os.path.join(folder, "use.ts"), "w", encoding="utf-8") as file:
        file.write(USE)
    types = os.path.join(REPOSITORY, "bindings", "node", "node_modules", "@types")
    output(tsc, "--strict", "--noEmit", "--target", "es2022", "--module", "nodenext", "--typeRoots", types, "--types", "node", "use.ts", cwd=folder)


def main():
    if not shutil.which("npm") or not os.path.isdir(os.path.join(REPOSITORY, "bindings", "node", "node_modules", "typescript")):
        print("SKIPPED: no npm, or no koffi and TypeScript; run npm ci in bindings/node")
        sys.exit(77)
    with open(os.path.join(REPOSITORY, "bindings", "node", "README.md"), encoding="utf-8") as file:
        readme = file.read()
    assert readme.count("\n") <= 20, "the README has more than twenty lines"
    program = re.search(r"```js\n(.*?)```", readme, re.S)[1]
    assert len(program.splitlines()) <= 15, "the program has more than 15 lines"
    with tempfile.TemporaryDirectory(prefix="aerie_npm_") as folder:
        around = {"PATH": os.environ["PATH"], "HOME": folder, "XDG_CACHE_HOME": os.path.join(folder, "cache")}
        path = output(sys.executable, os.path.join(REPOSITORY, "bindings", "package.py"), "npm", LIBRARY, folder).strip()
        with open(os.path.join(folder, "package.json"), "w", encoding="utf-8") as file:
            file.write('{"name": "bare", "private": true, "type": "module"}')
        output("npm", "install", "--offline", "--no-audit", "--no-fund", path, cwd=folder, env=around)
        with open(os.path.join(folder, "program.mjs"), "w", encoding="utf-8") as file:
            file.write(program)
        said = output("node", "program.mjs", cwd=folder, env=around)
        assert re.search(r"^\d+ of \d+ tokens were drafted$", said, re.M), said
        assert said.rstrip().endswith(("cancelled", "stop")), said
        assert "model 13048320 13048320" in said, said
        assert os.path.getsize(os.path.join(folder, "apples.talk")) > 1000
        check_types(folder)
        print(f"{os.path.basename(path)}, {os.path.getsize(path) >> 20} MB: the README's program runs, the types hold")


main()
