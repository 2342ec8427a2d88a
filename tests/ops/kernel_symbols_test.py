# A kernel object may define weak symbols only in its own instruction set's namespace: the linker keeps
# one copy of a shared inline function, and that copy might need AVX on a CPU without it.
import re
import subprocess
import sys

isa, nm, *objects = sys.argv[1:]
own = re.compile(r"aerie::cpu::" + isa + r"\b")
failures = []
for path in objects:
    listing = subprocess.run([nm, "-C", path], check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        match = re.match(r"[0-9a-f ]{16} ([WVuwvi]) (.*)", line)
        if match and not own.search(match[2]):
            failures.append(f"{path}: {match[2]}")
if not objects:
    failures.append("no objects to check")
print("\n".join(failures) or f"{len(objects)} objects of {isa} are clean")
sys.exit(bool(failures))
