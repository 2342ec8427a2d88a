"""Runs the tests of a program in several processes side by side. Tests that a process did not finish run again alone,
with launches that are waited for: a kernel that faults takes the device from all later tests of its process, and only
then is it named."""

import re
import time

import runs

MAX_ALONE = 24  # most tests that run again
ALONE = 20       # seconds for each


def tests_of(check, program, pattern, more=None):
    """Names of the tests of a program that match `pattern`; none if the program does not start."""
    listed = check.runner.output([check.program(program), "--gtest_list_tests", f"--gtest_filter={pattern}"], 25, more)
    suite, found = "", []
    for line in listed.splitlines():
        name = line.split("#")[0].rstrip()
        if re.fullmatch(r"[\w/]+\.", name):
            suite = name
        elif suite and re.fullmatch(r"  [\w/]+", name):
            found.append(suite + name.strip())
    return found


def unfinished(result, tests):
    done = set(runs.tests_in(runs.text_of(result.log), "(?:OK|SKIPPED)"))
    return [test for test in tests if test not in done]


def run(check, section, program, pattern, count, limit, more=None):
    """Runs the tests in `count` processes. Reports one line for all, and one for each test that fails alone, too."""
    tests = tests_of(check, program, pattern, more)
    name = f"{program} {pattern}"
    if not tests:
        check.report.note(runs.Result(section, name, 0, runs.FAILED, f"{runs.CHECKED_NOTHING}: there are no tests {pattern}"))
        return
    begin = time.monotonic()
    dealt = [tests[i::count] for i in range(min(count, len(tests)))]
    ended = check.runner.side_by_side(
        [(section, f"{program}.{i}", limit, [check.program(program), "--gtest_filter=" + ":".join(some)], more)
         for i, some in enumerate(dealt)], count)
    passed, bad = sum(r.passed for r in ended), [r for r in ended if r.is_bad()]
    text = f"{passed} of {len(tests)} tests passed in {len(dealt)} processes" + "".join(f"; {r.text}" for r in bad[:1])
    skipped = [r for r in ended if r.status == runs.SKIPPED]
    if bad:
        status = runs.FAILED
    else:
        status = runs.PASSED if passed else runs.SKIPPED if skipped else runs.FAILED
    if not passed:
        text += f"; {skipped[0].text}" if skipped and not bad else f"; {runs.CHECKED_NOTHING}"
    check.report.note(runs.Result(section, name, time.monotonic() - begin, status, text, passed, [t for r in bad for t in r.unsure]))
    suspects = [test for r, some in zip(ended, dealt) if r.is_bad() for test in unfinished(r, some)]
    run_alone(check, section, program, suspects, more)


def run_alone(check, section, program, suspects, more):
    passed = 0
    for test in suspects[:MAX_ALONE]:
        result = check.runner.run(section, f"alone {test}", ALONE, [check.program(program), f"--gtest_filter={test}"],
                                  dict(more or {}, CUDA_LAUNCH_BLOCKING="1"))
        passed += result.status == runs.PASSED
        if result.status != runs.PASSED:
            check.report.note(result)
    if suspects:
        check.report.table(f"{section}: {program}, again alone", f"{len(suspects)} tests were not finished; of "
                           f"{min(len(suspects), MAX_ALONE)} that ran again alone {passed} pass there")
