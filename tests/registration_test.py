#!/usr/bin/env python3
"""Every test that ctest knows can say that it was skipped, and has one label that says where it runs.

usage: registration_test.py BUILD-FOLDER
"""
import json
import subprocess
import sys

# scripts/test.sh runs quick and simt, `scripts/test.sh --all` also long; CI runs the others if scripts/setup.sh
# has installed the programs that they need.
LABELS = {"quick", "simt", "long", "web", "desktop", "replicas"}


def fault(test):
    properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
    if properties.get("SKIP_RETURN_CODE") != 77:
        return "is registered without aerie_run, so ctest takes a skipped run for a failure"
    if len(LABELS & set(properties.get("LABELS", []))) != 1:
        return "needs one label of " + ", ".join(sorted(LABELS))
    return None


def main():
    assert fault({"properties": [{"name": "LABELS", "value": ["quick"]}]}), "the test itself is wrong"
    listed = subprocess.run(["ctest", "--test-dir", sys.argv[1], "--show-only=json-v1"], check=True,
                            stdout=subprocess.PIPE).stdout
    tests = json.loads(listed)["tests"]
    faults = [f"{test['name']} {fault(test)}" for test in tests if fault(test)]
    print("\n".join(faults) or f"{len(tests)} tests")
    return 1 if faults or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
