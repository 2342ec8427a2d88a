"""Runs the sections of gpu_check.sh, each within its time, and reports after every one."""

import argparse
import os
import sys
import time

import report
import runs
import sections
import suite

CALLS = {"first": sections.FIRST, "second": sections.SECOND}
MOST = 560  # seconds per call


def arguments():
    parser = argparse.ArgumentParser(prog="gpu_check.sh", description=__doc__)
    parser.add_argument("--root", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--only", default="first")
    parser.add_argument("--suite")
    parser.add_argument("--out", default=".")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seconds", type=float)
    its = parser.parse_args()
    names = CALLS.get(its.only) or its.only.split(",")
    unknown = [name for name in names if name not in sections.SECONDS]
    if unknown:
        parser.error(f"there is no section {unknown[0]}; there are first, second, {', '.join(sections.SECONDS)}")
    its.names, its.seconds = names, its.seconds or min(sections.seconds_of(names), MOST)
    try:
        os.makedirs(its.out, exist_ok=True)
        with open(os.path.join(its.out, "gpu_report.md"), "w", encoding="utf-8"):
            pass
    except OSError as error:
        parser.error(f"--out {its.out} cannot be written: {error.strerror}")
    return its


def run_section(name, check):
    try:
        with check.clock.section(sections.SECONDS[name]):
            return getattr(sections, name + "_section")(check)
    except Exception as error:  # an error here must not cost the next section
        check.report.note(runs.Result(name, "section", 0, runs.FAILED, f"{type(error).__name__}: {error}"))
        return None


def main():
    its = arguments()
    clock = runs.Clock(its.seconds)
    written = report.Report(its.out, its.device, clock)
    try:
        where = suite.unpack(its.suite or os.path.join(its.root, "build", "gpu_suite"))
    except suite.Missing as error:
        written.note(runs.Result("start", "suite", 0, runs.FAILED, str(error)))
        written.write()
        return written.end()
    check = sections.Check(its, where, written, clock)
    wanted = sections.seconds_of(its.names)
    print(f"at most {its.seconds:.0f} s" + (f", though the sections may take {wanted}: name fewer" if wanted > its.seconds else ""))
    written.note(runs.Result("start", "unpacked", time.monotonic() - clock.begin, runs.DONE, where))
    try:
        for name in ["start"] + its.names:
            here = run_section(name, check)
            written.write()
            if name == "start" and not here:
                for other in its.names:
                    written.note(runs.Result(other, "section", 0, runs.SKIPPED, f"{its.device} is not here"))
                break
    finally:
        check.end()
    return written.end()


if __name__ == "__main__":
    sys.exit(main())
