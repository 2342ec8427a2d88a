"""The sections of gpu_check.sh, the most useful ones first.

section     seconds  what
text             15  a text on the GPU and on the CPU, in f16 and q8_0
ops              80  all op tests of CUDA in shards side by side
compare          85  `aerie compare` with the CPU in four types, same bits as the CPU } side by side
lossless         85  drafted = plain, rows of trees, recordings                       } where both are named
bench           170  alone on the GPU: passes and cycles of 1.1B and 7B, single matmuls, PyTorch's yardstick
early            45  the same passes with early launches and without, and the same text
profile          25  times by op
vulkan          110  the same GPU through Vulkan: op tests, same bits, passes, drafted = plain (vulkan.py)
ncu              40  hardware counters of matmuls at 1 and 60 rows
sanitizer        70  memcheck, racecheck, initcheck, synccheck side by side
large            60  8B in q4_k, Mixtral in q4_0
invariance      500  every row of every tree
samples         500  what is drawn has the distribution that it should
"""

import json
import os
import re
import shutil
import tempfile

import clocks
import expected
import runs
import shards
import vulkan

SECONDS = {"start": 20, "text": 15, "ops": 80, "compare": 85, "lossless": 85, "bench": 170, "early": 45, "profile": 25,
           "vulkan": 110, "ncu": 40, "sanitizer": 70, "large": 60, "invariance": 500, "samples": 500}
FIRST = ["text", "ops", "compare", "lossless", "bench", "early", "profile"]
SECOND = ["vulkan", "ncu", "sanitizer", "large"]


def seconds_of(names):
    """The most seconds that sections take together with the start; compare and lossless run side by side."""
    beside = SECONDS["lossless"] if "compare" in names and "lossless" in names else 0
    return SECONDS["start"] + sum(SECONDS[name] for name in names) - beside


SHARDS = 14  # for the op tests, which are bound by the host
ROWS = "1,2,4,8,16,32,60,64"
FEW_ROWS = ("--rows", "1,8,16,60", "--draft", "none")
QUICK_OPS = ["RowsTest*", "BeamTest*", "ReplayTest*", "ConsumersTest*", "QuantisedTest.MatmulAdds*", "MatmulTest.Adds*",
             "MatmulTest.Takes*", "AttentionTest.TreesEqual*", "ChoiceTest.Extremes*"]


class Check:
    """The state that all sections share: the suite's programs, their environment, the report, the logs."""

    def __init__(self, wanted, suite, report, clock):
        self.root, self.names, self.device = wanted.root, wanted.names, wanted.device
        self.suite, self.report, self.clock = suite, report, clock
        self.work = tempfile.mkdtemp(prefix="aerie-gpu-check-")
        report.logs = os.path.join(self.work, "logs")
        environment = dict(os.environ, LD_LIBRARY_PATH=self.libraries("lib"), AERIE_TEST_DEVICE=self.device, AERIE_TEST_ROOT=self.root,
                           AERIE_MODELS=os.path.join(self.root, "models"), XDG_CACHE_HOME=os.path.join(self.work, "cache"))
        environment["PATH"] += ":/usr/local/cuda/bin"
        # Only our programs use the suite's libraries; the machine's tools have their own.
        self.foreign = {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
        self.runner = runs.Runner(report.logs, environment, clock, lambda path: path.startswith(suite))
        self.clocks = clocks.ClockLog(os.path.join(report.out, "clocks.csv"))
        self.texts_are_done = False

    def libraries(self, *folders):
        return ":".join([os.path.join(self.suite, folder) for folder in folders] +
                        [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path])

    def program(self, name):
        return os.path.join(self.suite, "bin", name)

    def run(self, *task, **more):
        return self.report.note(self.runner.run(*task, **more))

    def end(self):
        self.clocks.end()
        self.report.write()
        self.report.logs = None  # the logs are packed already
        shutil.rmtree(self.work, ignore_errors=True)

    def bench(self, section, shape, weights, *options, name="", seconds=8, limit=70, more=None, device=None):
        """Runs `aerie bench` and reports its figures beside the predictions. Returns its JSON object, or None."""
        device = device or self.device
        name = name or " ".join([device.split(":")[0], shape, weights, *options])
        out, since = os.path.join(self.work, "bench.json"), self.clocks.lines()
        result = self.runner.run(section, name, limit, [self.program("aerie"), "bench", "--device", device, "--like", shape,
                                                        "--weights", weights, "--json", "--seconds", str(seconds), *options], more, out)
        bench = None
        if result.status == runs.PASSED:
            try:
                with open(out, encoding="utf-8") as file:
                    bench = json.load(file)
            except (OSError, ValueError) as error:
                result = runs.Result(section, name, result.seconds, runs.FAILED, f"no object of a bench: {error}", log=result.log)
        if bench is not None and not bench.get("passes"):
            result, bench = runs.Result(section, name, result.seconds, runs.FAILED, f"{runs.CHECKED_NOTHING}: no passes"), None
        self.report.note(result)
        if bench is None:
            return None
        self.report.benches[name] = bench
        ranges = expected.ranges_for(bench.get("device_description", ""), shape, weights)
        self.report.table(name, "\n".join([expected.passes_of(bench), expected.beside(expected.figures_of(bench), ranges),
                                           self.clocks.summary(since)]))
        self.report.write()
        return bench

    def tiny(self):
        return ["-m", os.path.join(self.root, "models", "aerie-tiny")]


def start_section(check):
    """Reports what the machine is. Returns whether the device is there and can be used."""
    if check.clocks.problem:
        check.report.note(runs.Result("start", "clocks", 0, runs.SKIPPED, check.clocks.problem))
    smi = check.runner.output(["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,clocks.sm,"
                               "temperature.gpu,power.limit,persistence_mode,mig.mode.current", "--format=csv"], 15)
    devices = check.runner.output([check.program("aerie"), "devices"], 25)
    missing = check.runner.output(["bash", "-c", 'ldd "$0"/* 2>&1 | grep -E "not found|No such" | sort -u', check.suite + "/bin"], 15)
    listed = re.search(rf"^{re.escape(check.device)} +(.*)$", devices, re.M)
    problem = re.search(rf"^{re.escape(check.device)} .*\n +cannot be used: (.*)$", devices, re.M)
    check.report.machine = {"GPU, idle": smi, "devices": devices, "system": " ".join(os.uname()), "CPUs": os.cpu_count()}
    check.report.table("Machine", f"{smi}\n{devices}")
    if missing.strip():
        check.report.note(runs.Result("start", "libraries", 0, runs.FAILED, missing))
    if not listed:
        check.report.note(runs.Result("start", "device", 0, runs.SKIPPED, f"{check.device} is not here"))
    elif problem:
        check.report.note(runs.Result("start", "device", 0, runs.FAILED, problem.group(1)))
    else:
        check.report.note(runs.Result("start", "device", 0, runs.DONE, listed.group(1)))
    return listed and not problem


def text_on(check, section, weights, device, more=None):
    out = os.path.join(check.work, "text")
    name = f"text {weights} {device}" + "".join(f" {key}={value}" for key, value in (more or {}).items())
    result = check.run(section, name, 15, [check.program("aerie"), "generate", *check.tiny(), "-p", "Once upon a time", "-n", "32",
                                           "-q", "--device", device, "--weights", weights], more, out)
    return runs.text_of(out).strip() if result.status == runs.PASSED else ""


def note_texts(check, section, name, texts, may_differ=False):
    same = bool(texts[0]) and texts[0] == texts[1]
    status = runs.PASSED if same else runs.DONE if may_differ and all(texts) else runs.FAILED
    text = "the same text" if same else "an empty text" if not all(texts) else f"another text: {texts[0][:70]!r}, {texts[1][:70]!r}"
    check.report.note(runs.Result(section, name, 0, status, text))


def text_section(check):
    for weights in ("f16", "q8_0"):
        texts = [text_on(check, "text", weights, device) for device in (check.device, "cpu")]
        # Float products may differ in their last bits, and then their texts.
        note_texts(check, "text", f"{weights} as on the CPU", texts, weights == "f16")


def ops_section(check):
    shards.run(check, "ops", "ops_test", "*/cuda", SHARDS, 65)


def compare_tasks(check):
    tasks = [("compare", "same bits as the CPU", 80, [check.program("engine_test"), "--from=same_bits_test.cpp"])]
    return tasks + [("compare", f"compare {weights}", 80, [check.program("aerie"), "compare", *check.tiny(), "--device", "cpu",
                                                           "--device", check.device, "--weights", weights, "-q"])
                    for weights in ("f16", "bf16", "q8_0", "q4_k")]


def lossless_tasks(check):
    def shares(name, file, pattern, count, **variables):
        return [("lossless", f"{name}, {i + 1} of {count}", 90,
                 [check.program("engine_test"), f"--from={file}", f"--gtest_filter={pattern}"],
                 dict(variables, GTEST_TOTAL_SHARDS=str(count), GTEST_SHARD_INDEX=str(i))) for i in range(count)]
    return (shares("drafted = plain", "lossless_test.cpp", "Types/*", 6, AERIE_TEST_PROMPTS="3") +
            shares("mixes", "lossless_test.cpp", "Mixes.*:Coupled.*:LongTexts.*", 1, AERIE_TEST_PROMPTS="2") +
            shares("recordings", "recordings_test.cpp", "*", 1) +
            shares("rows of trees", "invariance_test.cpp", "Types/Trees.*after_40:Types/Invariance*", 4))


def texts_section(check, tasks):
    for result in check.runner.side_by_side(tasks, 8):
        if result.name.startswith("compare ") and result.status == runs.PASSED and "PASS: " not in runs.text_of(result.log):
            result = runs.Result(result.section, result.name, result.seconds, runs.FAILED, runs.CHECKED_NOTHING, log=result.log)
        check.report.note(result)
        if result.name.startswith("compare "):
            check.report.table(result.name, runs.lines_with(result.log, r"multiprocessors|^(?:ok|FAIL|PASS)"))


def compare_section(check):
    tasks = compare_tasks(check)
    if "lossless" in check.names:
        tasks, check.texts_are_done = tasks + lossless_tasks(check), True
    texts_section(check, tasks)


def lossless_section(check):
    if not check.texts_are_done:
        texts_section(check, lossless_tasks(check))


def bench_section(check):
    check.bench("bench", "tinyllama-1.1b", "f16", "--rows", ROWS, limit=40)
    for weights in ("f16", "q8_0"):
        check.bench("bench", "llama-2-7b", weights, "--rows", ROWS)
    single = check.run("bench", "single matmuls", 60, [check.program("bench_gpu_ops"), check.device, "f16", "q8_0", "q4_0"])
    check.report.table("Single matmuls", runs.lines_with(single.log, r" us |copy of"))
    python = shutil.which("python3") or "python3"
    yardstick = check.run("bench", "yardstick of PyTorch", 60, [python, os.path.join(check.root, "scripts", "gpu_yardstick.py"),
                                                                os.path.join(check.report.out, "yardstick.json")], check.foreign)
    check.report.table("Yardstick", runs.lines_with(yardstick.log, r" us$|copy_gb"))


def early_section(check):
    """Compares texts and times with early launches on and off. Only different bits can show a race of kernels that
    start early, since tools like compute-sanitizer start kernels one after the other."""
    switch = {"on": {"AERIE_CUDA_EARLY_LAUNCH": "1"}, "off": {"AERIE_CUDA_EARLY_LAUNCH": "0"}}
    for weights in ("f16", "q8_0"):
        note_texts(check, "early", f"{weights} with and without", [text_on(check, "early", weights, check.device, more)
                                                                   for more in switch.values()])
    for weights in ("f16", "q4_0"):
        both = [check.bench("early", "llama-2-7b", weights, *FEW_ROWS, seconds=3, name=f"{weights}, early launches {which}",
                            limit=25, more=more) for which, more in switch.items()]
        if all(both):
            on, off = (expected.seconds_of(bench) for bench in both)
            ratios = {f"off / on, {rows} rows": off[rows] / on[rows] for rows in on if rows in off}
            check.report.table(f"Early launches off by on, {weights}", expected.beside(ratios, {"off / on, 1 rows": expected.EARLY}))


def profile_section(check):
    for weights in ("f16", "q8_0"):
        result = check.run("profile", weights, 25, [check.program("aerie"), "bench", "--device", check.device, "--like", "llama-2-7b",
                                                    "--weights", weights, "--rows", "1,60", "--draft", "none", "--seconds", "2", "--profile"])
        check.report.table(f"Times by op, {weights}", "\n".join(runs.text_of(result.log).replace("\r", "\n").splitlines()[-36:]))


def vulkan_section(check):
    vulkan.run(check)


def ncu_section(check):
    for rows in ("1", "60"):
        result = check.runner.run("ncu", f"matmuls of {rows} rows", 40, [
            "ncu", "--clock-control", "none", "--graph-profiling", "node", "--target-processes", "all", "-k", "regex:multiply", "-c", "5",
            "--section", "SpeedOfLight", "--section", "MemoryWorkloadAnalysis", "--section", "WarpStateStats", "--section", "LaunchStats",
            "--section", "Occupancy", check.program("aerie"), "bench", "--device", check.device, "--like", "llama-2-7b", "--weights", "f16",
            "--layers", "4", "--rows", rows, "--draft", "none", "--seconds", "1", "-q"])
        text = runs.text_of(result.log)
        figures = runs.lines_with(result.log, r"multiply|Throughput|Duration|Stall|Registers|Waves|Achieved|L2 Hit")[:6000]
        if "ERR_NVGPUCTRPERM" in text:
            result = runs.Result("ncu", result.name, result.seconds, runs.SKIPPED, "counters are for administrators here", log=result.log)
        elif result.status == runs.PASSED and "Duration" not in figures:
            result = runs.Result("ncu", result.name, result.seconds, runs.FAILED, runs.CHECKED_NOTHING, log=result.log)
        check.report.note(result)
        check.report.table(f"Counters, {rows} rows", figures)


def sanitizer_section(check):
    quick = ":".join(f"*{name}/cuda" for name in QUICK_OPS)
    # Only the program below the tool gets the library path of the suite.
    tasks = [("sanitizer", tool, 115, ["compute-sanitizer", "--tool", tool, "--target-processes", "all", "--error-exitcode", "1", "env",
                                       "LD_LIBRARY_PATH=" + check.libraries("lib"), check.program("ops_test"), f"--gtest_filter={quick}"],
              check.foreign) for tool in ("memcheck", "racecheck", "initcheck", "synccheck")]
    for result in check.runner.side_by_side(tasks, len(tasks)):
        if "evice not supported" in runs.text_of(result.log):
            result = runs.Result("sanitizer", result.name, result.seconds, runs.SKIPPED, "the tool does not support this device", log=result.log)
        check.report.note(result)
        check.report.table(f"compute-sanitizer {result.name}", runs.lines_with(result.log, r"^=========")[-2500:])


def large_section(check):
    check.bench("large", "llama-3.1-8b", "q4_k", "--rows", ROWS, limit=55)
    check.bench("large", "mixtral-8x7b", "q4_0", *FEW_ROWS, limit=55)


def invariance_section(check):
    check.run("invariance", "rows of trees", 490, [check.program("engine_test"), "--from=invariance_test.cpp", "--gtest_filter=Types/*"])


def samples_section(check):
    check.run("samples", "distribution", 490, [check.program("ops_long_test"), "--gtest_filter=*/cuda"])
