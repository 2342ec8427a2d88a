"""The report: lines on the screen, tables, and the files in the folder of --out."""

import glob
import json
import os
import tarfile
import threading
import time

import runs

MAX_LOG = 1 << 20  # bytes kept of the end of a log


def cell(text):
    return " ".join(str(text).split()).replace("|", "/")


class Report:
    def __init__(self, out, device, clock):
        self.out, self.device, self.clock = os.path.abspath(out), device, clock
        self.results, self.tables, self.benches, self.machine = [], [], {}, {}
        self.logs, self.guard = None, threading.Lock()

    def note(self, result):
        """Adds a result to the report, prints its line at once, and returns it."""
        with self.guard:
            self.results.append(result)
        print(f"{result.section:10} {result.name[:40]:40} {result.seconds:5.0f} s  {result.status}: {cell(result.text)[:300]}", flush=True)
        return result

    def table(self, title, text):
        with self.guard:
            self.tables.append((title, text.rstrip()))
        if text.strip():
            print(f"--- {title}\n{text.rstrip()}", flush=True)

    def bad(self):
        return [result for result in self.results if result.is_bad()]

    def good(self):
        return [result for result in self.results if result.status == runs.PASSED]

    def write(self):
        self.put("gpu_report.json", json.dumps(
            {"schema": "aerie-gpu-report-3", "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "device": self.device,
             "machine": self.machine, "seconds": round(self.clock.passed()), "checks": [r.as_json() for r in self.results],
             "benches": self.benches}, indent=1))
        lines = ["# The GPU backends, checked", ""] + [f"{key}: {cell(value)}  " for key, value in self.machine.items()]
        lines += ["", "| section | check | seconds | status | result |", "|---|---|---|---|---|"]
        lines += [f"| {r.section} | {cell(r.name)} | {r.seconds:.0f} | {r.status} | {cell(r.text)} |" for r in self.results]
        for title, text in self.tables:
            lines += ["", f"## {title}", "", "~~~", text, "~~~"]
        self.put("gpu_report.md", "\n".join(lines) + "\n")
        if self.logs:
            self.pack_logs()

    def pack_logs(self):
        new = os.path.join(self.out, "gpu_logs.tar.gz.new")
        with tarfile.open(new, "w:gz", compresslevel=5) as tar:
            for log in sorted(glob.glob(os.path.join(self.logs, "*.log"))):
                size = os.path.getsize(log)
                with open(log, "rb") as file:
                    file.seek(max(0, size - MAX_LOG))
                    entry = tarfile.TarInfo(os.path.basename(log))
                    entry.size = min(size, MAX_LOG)
                    tar.addfile(entry, file)
        os.replace(new, os.path.join(self.out, "gpu_logs.tar.gz"))

    def put(self, name, text):
        path = os.path.join(self.out, name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".new", path)

    def end(self):
        """Prints the last lines, which a caller sees first. Returns the exit status."""
        for result in self.bad()[:25]:
            print(f"{result.status}: {result.section} {result.name}: {cell(result.text)[:300]}")
        checked = f"{len(self.good())} checks passed, {len(self.bad())} did not"
        print(f"{checked}; {self.clock.passed():.0f} s; {os.path.join(self.out, 'gpu_report.md')}")
        if not self.good():
            print(f"gpu_check: {runs.CHECKED_NOTHING}")
        return 0 if self.good() and not self.bad() else 1
