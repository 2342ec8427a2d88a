"""Runs of programs: each in a session of its own and within a limit, and what their logs say of them."""

import concurrent.futures
import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
import time

PASSED, FAILED, STOPPED, SKIPPED, DONE = "passed", "FAILED", "stopped", "Skipped", "done"
LEAST = 2  # a run with fewer seconds left is not begun
CHECKED_NOTHING = "found nothing to check"


class Result:
    """How a run ended. `passed` counts tests, `unsure` names those that may have failed."""

    def __init__(self, section, name, seconds, status, text, passed=0, unsure=(), log=""):
        self.section, self.name, self.seconds, self.status, self.text = section, name, seconds, status, text
        self.passed, self.unsure, self.log = passed, list(unsure), log

    def is_bad(self):
        return self.status in (FAILED, STOPPED)

    def as_json(self):
        return {"section": self.section, "name": self.name, "seconds": round(self.seconds, 1), "status": self.status,
                "result": self.text, "tests_passed": self.passed, "unsure": self.unsure[:40]}


class Clock:
    """The time that is left to the call, and to its current section, in seconds."""

    def __init__(self, seconds):
        self.begin = time.monotonic()
        self.end = self.section_end = self.begin + seconds

    @contextlib.contextmanager
    def section(self, seconds):
        self.section_end = min(self.end, time.monotonic() + seconds)
        try:
            yield
        finally:
            self.section_end = self.end

    def left(self):
        return self.section_end - time.monotonic()

    def passed(self):
        return time.monotonic() - self.begin


def text_of(log):
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def lines_with(log, pattern):
    return "\n".join(line.rstrip() for line in text_of(log).splitlines() if re.search(pattern, line))


def tests_in(text, outcome):
    return re.findall(rf"^\[ +{outcome} +\] ([\w./]+)(?:,| \()", text, re.M)


def judge(section, name, seconds, code, log, has_tests):
    """The Result of a run that ended with `code`, or was stopped (None), by what its log has of GoogleTest or the
    program."""
    text = text_of(log)
    passed, failed = len(tests_in(text, "OK")), sorted(set(tests_in(text, "FAILED")))
    begun = re.findall(r"^\[ RUN +\] (\S+)", text, re.M)
    ended = set(tests_in(text, "(?:OK|FAILED|SKIPPED)"))
    broken = begun[-1:] if begun and begun[-1] not in ended else []
    unsure = sorted(set(failed + broken))
    behind = (f", {passed} tests" if passed else "") + (f"; in {broken[0]}" if broken else "")
    error = re.search(r"^.*(?:aerie: |cuda: |rror: |ERROR|not found|No such|Segmentation|terminate).*$", text, re.M)
    last = error.group(0) if error else (text.strip().splitlines() or [""])[-1]
    if code is None:
        return Result(section, name, seconds, STOPPED, "it took too long" + behind, passed, unsure, log)
    if "there is no such test" in text:
        return Result(section, name, seconds, FAILED, CHECKED_NOTHING + ": there is no such test", 0, [], log)
    if code == 77:
        reason = re.search(r"SKIPPED: (.*)", text)
        return Result(section, name, seconds, SKIPPED, reason.group(1)[:200] if reason else "nothing to run", passed, [], log)
    if code:
        return Result(section, name, seconds, FAILED, f"with {code}: {last.strip()[:240]}{behind}", passed, unsure, log)
    if has_tests and not passed:
        return Result(section, name, seconds, FAILED, CHECKED_NOTHING + ": no test ran", 0, [], log)
    return Result(section, name, seconds, PASSED, "passed" + behind, passed, [], log)


def end(process):
    """Ends a process and all that it started. One that hangs in the driver cannot be killed, and is left behind."""
    for what in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, what)
        except ProcessLookupError:
            return
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            continue
        if what == signal.SIGKILL:
            return


class Runner:
    """Runs commands with an environment, and keeps a log of each."""

    def __init__(self, logs, environment, clock, is_ours):
        self.logs, self.environment, self.clock, self.is_ours = logs, environment, clock, is_ours
        self.guard, self.count = threading.Lock(), 0
        os.makedirs(logs, exist_ok=True)

    def log_of(self, section, name):
        with self.guard:
            self.count += 1
            number = self.count
        return os.path.join(self.logs, f"{number:03}.{section}.{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:80]}.log")

    def run(self, section, name, limit, command, more=None, out=None):
        """Runs a command for at most `limit` seconds and returns its Result. `more`: further environment variables.
        `out`: the file for stdout, if it does not go to the log."""
        log, begin, limit = self.log_of(section, name), time.monotonic(), min(limit, self.clock.left())
        if limit < LEAST:
            return Result(section, name, 0, STOPPED, "not run: no time left")
        if not os.path.exists(command[0]) and not shutil.which(command[0]):
            missing = FAILED if self.is_ours(command[0]) else SKIPPED
            return Result(section, name, 0, missing, f"{os.path.basename(command[0])} is not here")
        with open(log, "wb") as file:
            file.write((" ".join(command) + "\n").encode())
            file.flush()
            target = open(out, "wb") if out else file
            try:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=target, stderr=file,
                                           env=dict(self.environment, **(more or {})), start_new_session=True)
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                end(process)
                code = None
            except OSError as error:
                file.write(f"{error}\n".encode())
                code = 126
            finally:
                if out:
                    target.close()
        has_tests = any(word.startswith("--gtest_filter") for word in command) and "--gtest_list_tests" not in command
        return judge(section, name, time.monotonic() - begin, code, log, has_tests)

    def side_by_side(self, tasks, workers):
        """Runs `tasks`, each the arguments of run(), `workers` of them at once. Returns the results in their order."""
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            return list(pool.map(lambda task: self.run(*task), tasks))

    def output(self, command, limit, more=None):
        """The text that a command writes to stdout and stderr, whether or not it succeeds."""
        result = self.run("ask", os.path.basename(command[0]), limit, command, more)
        return "\n".join(text_of(result.log).splitlines()[1:]) if result.log else result.text
