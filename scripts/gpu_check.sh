#!/usr/bin/env bash
# Checks and measures the CUDA backend on a machine with an NVIDIA GPU, within nine minutes: op tests, comparison with the CPU,
# bit-identity, benches, compute-sanitizer, the same through Vulkan where that finds the GPU. Runs in a copy of the repository, with
# the folder that the target gpu_suite made elsewhere (build/gpu_suite). Whatever is missing, fails or hangs is a line of the report
# and stops nothing else. Writes gpu_report.json, gpu_report.md, gpu_logs.txt, and of the benches clocks.csv and yardstick.json (what
# PyTorch gets of the GPU in the same minutes); the report anew after every check.
# A first call may leave Vulkan out; ncu, invariance and samples run only where they are named:
#   gpu_check.sh [--only ops,compare,lossless,bench,sanitizer,vulkan,ncu,invariance,samples] [--suite FOLDER] [--out FOLDER] [--device cuda:N]
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
only=ops,compare,lossless,bench,sanitizer,vulkan
sections=$only,ncu,invariance,samples
suite=$here/build/gpu_suite out=. device=cuda:0
usage() { echo "gpu_check: $1; see the head of $0" >&2 && exit 2; }
while [ $# -gt 0 ]; do
  [ $# -gt 1 ] || usage "$1 needs a value or is unknown"
  case $1 in
    --only) only=$2 ;;
    --suite) suite=$2 ;;
    --out) out=$2 ;;
    --device) device=$2 ;;
    *) usage "$1 is unknown" ;;
  esac
  shift 2
done
for name in ${only//,/ }; do
  case ",$sections," in *",$name,"*) ;; *) usage "there is no section $name" ;; esac
done
{ mkdir -p "$out" && : >"$out/gpu_logs.txt"; } || usage "$out cannot be written"
work=$(mktemp -d) || exit 2
clocks= # the process that logs them
trap 'rm -rf "$work"; [ -z "$clocks" ] || kill "$clocks" 2>/dev/null' EXIT
chmod -f +x "$suite"/bin/* # a copy may have lost it
export PATH=$PATH:/usr/local/cuda/bin XDG_CACHE_HOME=$work
# The suite's libraries are for its own programs: the machine's tools have theirs.
ours=(env "LD_LIBRARY_PATH=$suite/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
aerie=("${ours[@]}" "$suite/bin/aerie")
export AERIE_TEST_ROOT=$here AERIE_MODELS=$here/models AERIE_TEST_DEVICE=$device
# Containers often have the driver, but nothing that tells the Vulkan loader of it.
icd=/usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json
[ -e "$icd" ] && [ -z "${VK_DRIVER_FILES:-}" ] && ! ls /etc/vulkan/icd.d/nvidia* /usr/share/vulkan/icd.d/nvidia* >/dev/null 2>&1 && export VK_DRIVER_FILES=$icd
readonly all_seconds=520 # of the 540: the last check needs a moment to be stopped
section_end=$all_seconds
results=() rows=() benches=() tables=() failures=0

escape() { sed 's/\\/\\\\/g; s/"/\\"/g' | LC_ALL=C tr -cd '\40-\176'; }
line() { timeout -k 2 20 "$@" 2>/dev/null </dev/null | head -1; }

gpu=$(timeout -k 2 20 "${aerie[@]}" devices 2>&1 </dev/null | grep -e "^$device " -e error -e 'not found' | head -1)
state=$(line nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem,power.limit,temperature.gpu --format=csv,noheader)
machine="${gpu:-$device is not listed}; nvidia-smi: ${state:-absent}; $(uname -sr), $(nproc) CPU cores"

report() {
  local joined
  joined=$(printf '%s,\n  ' ${results[@]+"${results[@]}"})
  {
    printf '{"schema": "aerie-gpu-report-2", "device": "%s", "date": "%s", "checks": [\n  %s\n], "benches": {' \
      "$(printf %s "$machine" | escape)" "$(date -u +%FT%TZ)" "${joined%,*}"
    joined=$(printf '%s,' ${benches[@]+"${benches[@]}"})
    printf '%s}}\n' "${joined%,}"
  } >"$out/gpu_report.json"
  {
    printf '# The GPU backends, checked %s\n\n%s\n\n| section | check | seconds | result |\n|---|---|---|---|\n' "$(date -u +%FT%TZ)" "$machine"
    printf '%s\n' ${rows[@]+"${rows[@]}"} ${tables[@]+"${tables[@]}"}
  } >"$out/gpu_report.md"
}

# note SECTION NAME SECONDS RESULT: a line of the report.
note() {
  case $4 in passed*) ;; *) failures=$((failures + 1)) ;; esac
  printf '%-10s %-28s %4d s  %s\n' "$@"
  results+=("{\"section\": \"$1\", \"name\": \"$2\", \"seconds\": $3, \"result\": \"$(printf %s "$4" | escape)\"}")
  rows+=("| $1 | $2 | $3 | $(printf %s "$4" | escape | tr '|' '/') |")
  report
}

# What a command that ended with $1 has to say in its log $2.
outcome() {
  local tests running
  tests=$(grep -c '^\[       OK \]' "$2")
  running=$(grep '^\[ RUN  ' "$2" | tail -1 | cut -c14-)
  case $1 in
    0 | 77)
      if grep -q 'PASSED  \] 0 tests' "$2" || { [ "$1" = 77 ] && [ "$tests" = 0 ]; }; then
        echo "not run: $(grep -m1 SKIPPED: "$2" || echo 'no such test')"
      else
        echo "passed$([ "$tests" = 0 ] || echo ", $tests tests")"
      fi
      ;;
    124 | 137) echo "stopped: it took too long${running:+; $tests tests passed before $running}" ;;
    126 | 127) echo "not run: $(tail -1 "$2" | cut -c1-200)" ;;
    *)
      if grep -qi 'device not supported' "$2"; then
        echo "not run: the tool does not support this device"
      else
        echo "FAILED with $1: $(grep -E '^\[  FAILED  \]|aerie:|ERROR|rror:|xception|not found|No such' "$2" | head -1 | cut -c1-200)" \
          "${running:+($tests tests passed; the last one begun was $running)}"
      fi
      ;;
  esac
}

chosen() { case ",$only," in *",$1,"*) ;; *) return 1 ;; esac; }
# section NAME SECONDS: what its checks may take together.
section() {
  chosen "$1" || return 1
  section_end=$((SECONDS + $2 < all_seconds ? SECONDS + $2 : all_seconds))
}
# check SECTION NAME SECONDS COMMAND...; stdout goes to $work/out as well, both to the logs.
check() {
  local section=$1 name=$2 limit=$3 left=$((section_end - SECONDS)) start=$SECONDS code
  shift 3
  : >"$work/out"
  [ "$left" -ge 3 ] || { note "$section" "$name" 0 "not run: no time left" && return 1; }
  timeout -k 5 $((limit < left ? limit : left)) "$@" >"$work/out" 2>"$work/err" </dev/null
  code=$?
  cat "$work/out" "$work/err" >"$work/log"
  { printf '==== %s %s: exit code %s\n%s\n' "$section" "$name" "$code" "$*" && tail -c 200000 "$work/log"; } >>"$out/gpu_logs.txt"
  note "$section" "$name" $((SECONDS - start)) "$(outcome $code "$work/log")"
  return $code
}
# A process for every suite of the op tests: a kernel that faults takes the device from the rest of its process.
op_suites() {
  local filter=$1 suite_name
  timeout -k 2 20 "${ours[@]}" "$suite/bin/ops_test" --gtest_list_tests "--gtest_filter=$filter" 2>"$work/err" </dev/null | grep '^[A-Za-z].*\.$' >"$work/suites"
  [ -s "$work/suites" ] || check "$2" op_tests 20 "${ours[@]}" "$suite/bin/ops_test" "--gtest_filter=$filter"
  while read -r suite_name; do
    check "$2" "${suite_name//[^A-Za-z0-9]/}" "$3" "${ours[@]}" "$suite/bin/ops_test" "--gtest_filter=$suite_name$filter"
  done <"$work/suites"
}
# Of the object of a bench: what its cycle takes beyond a pass and the levels of its tree.
host_gap() {
  python3 - "$1" 2>/dev/null <<'PYTHON'
import json, sys
bench = json.load(open(sys.argv[1]))
passes = {p["rows"]: p["median_seconds"] for p in bench["passes"]}
for cycle in bench["cycles"]:
    if cycle["tree"] != "auto" and 60 in passes:
        levels = int(cycle["tree"].split(",")[1])
        rest = cycle["seconds"] - passes[60] - levels * bench["draft_level_seconds"]
        print(f"host gap: a cycle of the tree {cycle['tree']} takes {1e6 * rest:.0f} us beyond a pass of 60 rows and {levels} levels")
PYTHON
}
# table TITLE LINES...: for the end of the report, as they are.
table() {
  local title=$1 text
  shift
  text=$(printf '%s\n' "$@" | grep -v '^$')
  tables+=("" "## $title" "" "~~~" "$text" "~~~")
}
# bench SECTION DEVICE SHAPE WEIGHTS [OPTION...]
bench() {
  local section=$1 device=$2 shape=$3 weights=$4
  shift 4
  local options=$* name=${device%%:*}_${shape}_$weights
  name+=${options//[^a-z0-9]/}
  check "$section" "$name" 50 "${aerie[@]}" bench --device "$device" --like "$shape" --weights "$weights" --seconds 15 --json "$@" || return
  benches+=("\"$name\": $(cat "$work/out")")
  table "$name" "$(tr '\r' '\n' <"$work/err" | grep -v '^$')" "$(host_gap "$work/out")"
  report
}

report
case $gpu in
  "$device "*) ;;
  *)
    note start device 0 "not run: ${gpu:-there is no $device here}"
    exit 1
    ;;
esac
# Nothing can be built here: if a library is missing, nothing else needs to be read.
check start libraries 20 "${ours[@]}" bash -c '! ldd "$@" 2>&1 | grep -E "not found|No such"' - "$suite"/bin/*
section ops 110 && op_suites '*/cuda' ops 60
if section compare 100; then
  check compare same_bits_as_cpu 40 "${ours[@]}" "$suite/bin/same_bits_test"
  for weights in f16 bf16 q8_0; do
    check compare "$weights" 30 "${aerie[@]}" compare --device cpu --device "$device" --weights "$weights" --json
  done
fi
if section lossless 110; then
  check lossless every_drafter 80 "${ours[@]}" AERIE_TEST_PROMPTS=4 "$suite/bin/lossless_test" '--gtest_filter=Types/*'
  check lossless mixes 40 "${ours[@]}" AERIE_TEST_PROMPTS=2 "$suite/bin/lossless_test" '--gtest_filter=Mixes.*:Coupled.*'
fi
if section bench 320; then
  # What the GPU really ran at: the benches mean little if it was slowed down.
  nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,clocks_event_reasons.active --format=csv -lms 250 >"$out/clocks.csv" 2>/dev/null &
  clocks=$!
  check bench yardstick 75 python3 "$here/scripts/gpu_yardstick.py" "$out/yardstick.json"
  check bench single_kernels 60 "${ours[@]}" "$suite/bin/bench_gpu_ops" "$device" f16 q8_0
  table "Single matmuls" "$(grep ' us ' "$work/out")"
  for weights in f16 q8_0 q4_0; do bench bench "$device" llama-2-7b "$weights"; done
  for tokens in 1024 2048; do bench bench "$device" llama-2-7b f16 --prompt-tokens "$tokens" --rows 1,60 --draft none; done
  bench bench "$device" llama-3.1-8b f16
  check bench profile 30 "${aerie[@]}" bench --device "$device" --like llama-2-7b --weights f16 --rows 1,60 --draft none --seconds 3 --profile
  table "Times by op" "$(tail -40 "$work/err")"
  kill "$clocks" 2>/dev/null
  clocks=
fi
# The quick tests again under each tool: every kind of kernel, and graphs.
if section sanitizer 170; then
  quick='*RowsTest*/cuda:*BeamTest*/cuda:*ReplayTest*/cuda:*QuantisedTest.MatmulAdds*/cuda:*MatmulTest.Adds*/cuda:*MatmulTest.Takes*/cuda:*MatmulTest.Converts*/cuda'
  quick+=':*AttentionTest.TreesEqual*/cuda:*ModelShapesTest*/cuda:*ChoiceTest.Extremes*/cuda'
  for tool in memcheck racecheck initcheck synccheck; do
    # The variable of our libraries is for the program below the tool.
    check sanitizer "$tool" 60 compute-sanitizer --tool "$tool" --target-processes all --error-exitcode 1 \
      "${ours[@]}" "$suite/bin/ops_test" "--gtest_filter=$quick"
  done
fi
# The same GPU through Vulkan, where a loader finds it.
if section vulkan 200; then
  vulkan=$(timeout -k 2 30 "${aerie[@]}" devices 2>/dev/null </dev/null | awk '/^vulkan:/ && /NVIDIA|GeForce|Tesla/ { print $1; exit }')
  if [ -n "$vulkan" ]; then
    export AERIE_TEST_DEVICE=$vulkan
    for weights in f16 q8_0; do bench vulkan "$vulkan" llama-2-7b "$weights"; done
    check vulkan same_bits_as_cpu 40 "${ours[@]}" "$suite/bin/same_bits_test"
    op_suites '*/vulkan' vulkan 60
    check vulkan every_drafter 60 "${ours[@]}" AERIE_TEST_PROMPTS=2 "$suite/bin/lossless_test" '--gtest_filter=*EveryDrafter*'
    export AERIE_TEST_DEVICE=$device
  else
    note vulkan devices 0 "not run: no Vulkan driver here finds an NVIDIA GPU"
  fi
fi
if section ncu $all_seconds; then
  for rows in 1 60; do
    check ncu "matmul_$rows" 120 ncu --clock-control none --graph-profiling node --target-processes all -k regex:multiply_kernel -c 5 \
      --section SpeedOfLight --section MemoryWorkloadAnalysis --section WarpStateStats --section LaunchStats \
      "${aerie[@]}" bench --device "$device" --like llama-2-7b --weights f16 --rows "$rows" --draft none --seconds 1
  done
fi
section invariance $all_seconds && check invariance rows 500 "${ours[@]}" "$suite/bin/invariance_test" '--gtest_filter=Types/*'
section samples $all_seconds && check samples distribution 500 "${ours[@]}" "$suite/bin/ops_long_test" '--gtest_filter=*/cuda'
report
echo "$out/gpu_report.md, $out/gpu_report.json, $out/gpu_logs.txt; $failures of ${#rows[@]} did not pass"
[ "$failures" -eq 0 ]
