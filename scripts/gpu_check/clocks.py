"""The clocks that the GPU really ran at, logged while everything else runs."""

import csv
import subprocess

import runs

FIELDS = ["timestamp", "clocks.sm", "clocks.mem", "power.draw", "temperature.gpu", "utilization.gpu", "clocks_event_reasons.active"]


class ClockLog:
    """A log by nvidia-smi, which also keeps the driver loaded, so that it does not start anew with every process."""

    def __init__(self, path):
        self.path, self.process, self.problem = path, None, ""
        try:
            with open(path, "wb") as file:
                self.process = subprocess.Popen(
                    ["nvidia-smi", "--query-gpu=" + ",".join(FIELDS), "--format=csv,noheader,nounits", "-lms", "500"],
                    stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.DEVNULL, start_new_session=True)
        except OSError as error:
            self.problem = f"nvidia-smi: {error.strerror}"

    def end(self):
        if self.process:
            runs.end(self.process)
            self.process = None

    def lines(self):
        """How many lines the log has now."""
        return len(self.rows())

    def rows(self):
        try:
            with open(self.path, encoding="utf-8", errors="replace", newline="") as file:
                return [row for row in csv.reader(file, skipinitialspace=True) if len(row) == len(FIELDS)]
        except OSError:
            return []

    def summary(self, since):
        """A line about the clocks while the GPU was busy, from line `since` of the log on; "" if it never was."""
        busy = [row for row in self.rows()[since:] if row[5].isdigit() and int(row[5]) > 50]
        clocks = sorted(int(row[1]) for row in busy if row[1].isdigit())
        heat = [int(row[4]) for row in busy if row[4].isdigit()]
        if not clocks or not heat:
            return ""
        reasons = sorted({row[6].strip() for row in busy})
        return (f"SM clock {clocks[0]} to {clocks[-1]} MHz, {clocks[len(clocks) // 2]} in the median; up to {max(heat)} degrees; "
                f"reasons of slower clocks: {', '.join(reasons)}")
