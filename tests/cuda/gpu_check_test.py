"""Tests scripts/gpu_check.sh with programs that stand in for the suite's, and gpu_suite.sh. Needs no GPU. A test that
fails, a program that hangs, one that is missing and one that checks nothing must each be reported by name, and stop
nothing else.

gpu_check_test.py ROOT"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(sys.argv[1])
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts" / "gpu_check"))
import report as report_module
import runs
import sections
import vulkan

HANGS = 86399  # seconds, a number that no other process has
# Stands in for a program of GoogleTest's with five tests on two devices. Devices/B.Two/cuda aborts, and takes the tests
# behind it along; with CUDA_LAUNCH_BLOCKING it fails and names the kernel.
TESTS = """#!/usr/bin/env python3
import os, re, sys
names = [f"Devices/{s}.{t}/{d}" for s, t in (("A", "One"), ("A", "Two"), ("B", "One"), ("B", "Two"), ("B", "Three")) for d in ("cuda", "vulkan")]
if "--from=same_bits_test.cpp" in sys.argv:
    sys.exit(print("SKIPPED: no device") or 77)
pattern = next((a.split("=", 1)[1] for a in sys.argv if a.startswith("--gtest_filter=")), "*")
chosen = [n for n in names if any(re.fullmatch(re.escape(p).replace("\\\\*", ".*"), n) for p in pattern.split(":"))]
if "--gtest_list_tests" in sys.argv:
    for suite in sorted({n.split(".")[0] for n in chosen}):
        print(f"{suite}.")
        for n in chosen:
            if n.startswith(suite + "."):
                print(f"  {n.split('.')[1]}  # GetParam() = 72-byte object")
    sys.exit(0)
if not chosen:
    sys.exit(print("error: there is no such test", file=sys.stderr) or 1)
for n in chosen:
    print(f"[ RUN      ] {n}", flush=True)
    if n == "Devices/B.Two/cuda":
        if "CUDA_LAUNCH_BLOCKING" in os.environ:
            print("cuda: matmul_f16: an illegal memory access was encountered")
            print(f"[  FAILED  ] {n}, where GetParam() = 72-byte object (1 ms)")
            sys.exit(1)
        os.abort()
    print(f"[       OK ] {n} (1 ms)")
"""
AERIE = """#!/usr/bin/env bash
case "$1" in
  devices) printf 'cuda:0     NVIDIA H100 80GB HBM3 (compute capability 9.0), 132 multiprocessors, 79.1 GiB\\ncpu        two cores\\n' ;;
  generate) case "$*" in *cpu*q8_0*) echo "another end" ;; *) echo "Once upon a time" ;; esac ;;
  compare) echo "PASS: within the tolerances" ;;
  bench) case "$*" in
    *tinyllama*) sleep {HANGS} & sleep {HANGS} ;;
    *q8_0*) echo '{"passes": []}' ;;
    *) echo '{"device_description": "NVIDIA H100 80GB HBM3", "copy_gb_per_s": 3000, "pass_bytes": 13500000000, "draft_level_seconds": 0.0002,
      "passes": [{"rows": 1, "median_seconds": 0.005, "runs": 3}, {"rows": 60, "median_seconds": 0.009, "runs": 3}],
      "cycles": [{"tree": "60,6,10", "seconds": 0.01026}]}' ;;
    esac ;;
esac
""".replace("{HANGS}", str(HANGS))


class Failure(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Failure(what)


def make_suite(folder):
    (folder / "bin").mkdir(parents=True)
    for name, text in {"aerie": AERIE, "ops_test": TESTS, "engine_test": TESTS, "bench_gpu_ops": "#!/bin/sh\nexit 3\n"}.items():
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o644)  # as a copy may leave it


def run(suite, out, *options):
    command = ["bash", str(ROOT / "scripts" / "gpu_check.sh"), "--suite", str(suite), "--out", str(out), *options]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("AERIE_")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    report = out / "gpu_report.json"
    return done, json.loads(report.read_text()) if report.exists() else None


def status_of(report, name):
    found = [check for check in report["checks"] if check["name"] == name]
    expect(len(found) == 1, f"{name}: {len(found)} lines")
    return found[0]["status"], found[0]["result"]


def test_what_goes_wrong(folder):
    """Tests that fail, programs that are missing and programs that find nothing to check are reported."""
    done, report = run(folder / "suite", folder / "first", "--only", "text,ops,compare,lossless")
    expect(done.returncode == 1, f"status {done.returncode}: {done.stdout}{done.stderr}")
    expect(status_of(report, "f16 as on the CPU")[0] == "passed", "texts that are the same")
    expect(status_of(report, "q8_0 as on the CPU")[0] == "FAILED", "texts that are not")
    status, text = status_of(report, "ops_test */cuda")
    expect(status == "FAILED" and text.startswith("4 of 5 tests passed in 5 processes"), text)
    status, text = status_of(report, "alone Devices/B.Two/cuda")
    expect(status == "FAILED" and "matmul_f16: an illegal memory access" in text, f"the kernel is not named: {text}")
    expect(status_of(report, "same bits as the CPU") == ("Skipped", "no device"), "a program that skips")
    expect(status_of(report, "compare q4_k")[0] == "passed", "compare")
    for name in ("drafted = plain, 1 of 6", "mixes, 1 of 1"):
        status, text = status_of(report, name)
        expect(status == "FAILED" and "nothing to check" in text, text)
    status, text = status_of(report, "recordings, 1 of 1")
    expect(status == "FAILED", f"a program that aborts: {text}")
    done, report = run(folder / "suite", folder / "missing", "--only", "samples")
    missing = [check for check in report["checks"] if "ops_long_test is not here" in check["result"]]
    expect(done.returncode == 1 and missing and missing[0]["status"] == "FAILED", f"a program that is missing: {report['checks']}")
    expect((folder / "first" / "gpu_logs.tar.gz").exists() and "FAILED: ops" in done.stdout, "logs, and the end of the output")


def test_what_hangs(folder):
    """A bench that hangs is ended with its time, and so are the processes that it started; checks for which no time is
    left are reported."""
    done, report = run(folder / "suite", folder / "hangs", "--only", "bench", "--seconds", "5")
    status, text = status_of(report, "cuda tinyllama-1.1b f16 --rows 1,2,4,8,16,32,60,64")
    expect(status == "stopped" and "too long" in text, text)
    expect(status_of(report, "single matmuls") == ("stopped", "not run: no time left"), "what is behind it")
    expect(report["seconds"] < 12 and done.returncode == 1, f"{report['seconds']} s")
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=False).stdout
    expect(f"sleep {HANGS}" not in left, "a process is left")


def test_benches(folder):
    """Predictions are printed beside what is measured; a bench without passes and a program that fails are reported."""
    (folder / "suite" / "bin" / "aerie").write_text(AERIE.replace("*tinyllama*", "nothing"))
    done, report = run(folder / "suite", folder / "bench", "--only", "bench,early")
    expect(status_of(report, "cuda llama-2-7b f16 --rows 1,2,4,8,16,32,60,64")[0] == "passed", "a bench")
    reported = " ".join(done.stdout.split())
    for line in ("T(1), ms predicted 4.6 to 5.2 measured 5.00 as predicted", "T(60) / T(1) predicted 1.1 to 1.3 measured 1.80 OUTSIDE",
                 "host gap, us predicted 50 to 70 measured 60.00 as predicted"):
        expect(line in reported, f"not reported: {line}\n{done.stdout}")
    status, text = status_of(report, "cuda llama-2-7b q8_0 --rows 1,2,4,8,16,32,60,64")
    expect(status == "FAILED" and "nothing to check" in text, text)
    status, text = status_of(report, "single matmuls")
    expect(status == "FAILED" and text.startswith("with 3: "), text)
    expect("off / on, 1 rows" in done.stdout and status_of(report, "q8_0 with and without")[0] == "passed", "early launches")
    expect(list(report["benches"])[0].startswith("cuda tinyllama"), "objects of benches")


def test_without_a_gpu(folder):
    """Checks on a device that is not there are Skipped; a call that checked nothing, or has wrong options, fails."""
    done, report = run(folder / "suite", folder / "none", "--device", "cuda:1", "--only", "second")
    expect(done.returncode == 1 and "found nothing to check" in done.stdout, done.stdout)
    expect(status_of(report, "device") == ("Skipped", "cuda:1 is not here"), "the device")
    expect(sum(check["status"] == "Skipped" for check in report["checks"]) >= 5, "sections")
    done, report = run(folder / "absent", folder / "none")
    expect(done.returncode == 1 and "build the target gpu_suite" in done.stdout, done.stdout)
    for wrong in (["--only", "ops,nothing"], ["--unknown"], ["--seconds", "x"]):
        done, _ = run(folder / "suite", folder / "none", *wrong)
        expect(done.returncode == 2 and done.stderr.strip(), f"{wrong}: {done.returncode}")


def test_headless_vulkan(folder):
    """A driver whose GLX library needs what a bare server lacks is found through its EGL library, and what the loader
    says is reported."""
    driver = folder / "driver"
    driver.mkdir()
    for name in vulkan.LIBRARIES:
        (driver / name).touch()
    (folder / "suite" / "bin" / "aerie").write_text(
        "#!/usr/bin/env bash\n[[ $VK_DRIVER_FILES == *EGL* ]] && echo 'vulkan:1   NVIDIA H100 80GB HBM3, 79.1 GiB' && exit\n"
        "echo 'ERROR: libX11.so.6: cannot open shared object file' >&2; exit 1\n")
    vulkan.FOLDERS, vulkan.MANIFESTS = (str(driver),), ()
    os.environ.pop("AERIE_TEST_VULKAN", None)
    clock = runs.Clock(60)
    reported = report_module.Report(folder, "cuda:0", clock)
    check = sections.Check(SimpleNamespace(root=str(ROOT), names=[], device="cuda:0"), str(folder / "suite"), reported, clock)
    more, device = vulkan.find(check)
    expect(device == more.get("AERIE_TEST_DEVICE") == "vulkan:1" and more["AERIE_TEST_VULKAN"] == "1", f"{device}, {more}")
    named = json.loads(Path(more["VK_DRIVER_FILES"]).read_text())["ICD"]["library_path"]
    expect(named == str(driver / "libEGL_nvidia.so.0"), named)
    expect("libX11.so.6: cannot open" in reported.tables[-1][1], "what the loader said")
    check.end()


def test_time(_):
    """Both calls together fit into fifteen minutes of a machine, and every section exists."""
    first, second = sections.seconds_of(sections.FIRST), sections.seconds_of(sections.SECOND)
    expect(first <= 450 and first + second <= 780, f"{first} and {second} s")
    expect(set(sections.FIRST + sections.SECOND) < set(sections.SECONDS), "sections")
    for name in sections.SECONDS:
        expect(hasattr(sections, name + "_section"), f"no section {name}")


def test_archive(folder):
    """A suite as gpu_suite.sh packs it is unpacked, and one that is damaged is reported."""
    packed = folder / "packed"
    done = subprocess.run(["bash", str(ROOT / "scripts" / "gpu_suite.sh"), str(packed), "/bin/true"], capture_output=True, text=True, check=False)
    expect(done.returncode == 0 and "MiB" in done.stdout, done.stdout + done.stderr)
    with tarfile.open(packed / "suite.tar.xz") as archive:
        names = archive.getnames()
    expect("./bin/true" in names and "./share/aerie/acceptance.txt" in names, str(names))
    done, report = run(packed, folder / "unpacked")
    expect(status_of(report, "device")[0] == "Skipped", done.stdout)
    data = (packed / "suite.tar.xz").read_bytes()
    (packed / "suite.tar.xz").write_bytes(data[: len(data) // 2])
    done, report = run(packed, folder / "unpacked")
    expect(done.returncode == 1 and status_of(report, "suite")[0] == "FAILED", done.stdout)


def main():
    with tempfile.TemporaryDirectory() as name:
        os.environ["TMPDIR"] = name
        folder = Path(name)
        make_suite(folder / "suite")
        for test in (test_what_goes_wrong, test_what_hangs, test_benches, test_without_a_gpu, test_headless_vulkan, test_time, test_archive):
            try:
                test(folder)
                print(f"{test.__name__}: passed")
            except Failure as failure:
                sys.exit(f"{test.__name__}: {failure}")


if __name__ == "__main__":
    main()
