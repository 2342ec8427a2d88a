#!/usr/bin/env bash
# Checks and measures the CUDA backend on a machine with an NVIDIA GPU, within nine minutes: op tests, bit-identity, comparison
# with the CPU, benches, the same through Vulkan where that finds the GPU, compute-sanitizer. Runs in a copy of the repository, with the folder that the target gpu_suite made
# elsewhere (build/gpu_suite); writes gpu_report.json and .md.
#   gpu_check.sh [--only ops,lossless,compare,bench,vulkan,sanitizer] [--suite FOLDER] [--out FOLDER] [--device cuda:N]
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
suite=$here/build/gpu_suite
only=ops,lossless,compare,bench,vulkan,sanitizer
out=.
device=cuda:0
while [ $# -gt 0 ]; do
  case $1 in
    --only) only=$2 ;;
    --suite) suite=$2 ;;
    --out) out=$2 ;;
    --device) device=$2 ;;
    *) echo "gpu_check: $1 is unknown; see the head of $0" >&2 && exit 2 ;;
  esac
  shift 2
done
if [ ! -x "$suite/bin/aerie" ]; then
  echo "gpu_check: $suite has no programs; build the target gpu_suite first (cmake --build build --target gpu_suite)" >&2
  exit 2
fi
mkdir -p "$out"
export LD_LIBRARY_PATH=$suite/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export AERIE_TEST_ROOT=$here AERIE_MODELS=$here/models AERIE_TEST_DEVICE=$device
deadline=$((SECONDS + 520)) # of the 540 seconds, what the reports need is left
results=() rows=() failures=0

escape() { sed 's/\\/\\\\/g; s/"/\\"/g' | tr -d '\000-\037'; }

# check SECTION NAME SECONDS COMMAND...: one line of the report; its output goes to a log.
check() {
  local section=$1 name=$2 limit=$3
  shift 3
  case ",$only," in *",$section,"*) ;; *) return ;; esac
  local left=$((deadline - SECONDS)) start=$SECONDS log="$out/gpu_${section}_$name.log" result
  if [ "$left" -lt 5 ]; then
    result="not run: no time left"
  else
    [ "$limit" -gt "$left" ] && limit=$left
    timeout "$limit" "$@" >"$log" 2>&1
    case $? in
      0)
        result=passed
        grep -q 'PASSED  \] 0 tests' "$log" && result="not run: all skipped"
        ;;
      124) result="stopped after $limit s" ;;
      127) result="not run: no $1 here" ;;
      *) result="FAILED: $(grep -E 'FAILED|ERROR|error|aerie:' "$log" | head -1 | cut -c1-200)" ;;
    esac
  fi
  [ "$result" = passed ] || failures=$((failures + 1))
  printf '%-10s %-24s %4d s  %s\n' "$section" "$name" $((SECONDS - start)) "$result"
  results+=("{\"section\": \"$section\", \"name\": \"$name\", \"seconds\": $((SECONDS - start)), \"result\": \"$(printf %s "$result" | escape)\"}")
  rows+=("| $section | $name | $((SECONDS - start)) | $result |")
}

check ops all_ops 120 "$suite/bin/ops_test" '--gtest_filter=*/cuda'
check compare same_bits_as_cpu 60 "$suite/bin/same_bits_test"
check lossless every_drafter 120 env AERIE_TEST_PROMPTS=4 "$suite/bin/lossless_test" '--gtest_filter=Types/*'
# bench DEVICE SHAPE WEIGHTS: its JSON beside the report.
bench() {
  local json="$out/bench_${1%%:*}_$2_$3.json"
  check bench "${1%%:*}_$2_$3" 50 sh -c '"$0" bench --device "$1" --like "$2" --weights "$3" --seconds 15 --json -q >"$4"' \
    "$suite/bin/aerie" "$1" "$2" "$3" "$json"
}
for weights in f16 q8_0 q4_0; do bench "$device" llama-2-7b "$weights"; done
bench "$device" llama-3.1-8b f16
# The same GPU through Vulkan, where a loader finds it.
vulkan=$("$suite/bin/aerie" devices 2>/dev/null | awk '/^vulkan:/ && /NVIDIA|GeForce|Tesla/ { print $1; exit }')
if [ -n "$vulkan" ]; then
  check vulkan all_ops 90 "$suite/bin/ops_test" '--gtest_filter=*/vulkan'
  check vulkan every_drafter 60 env AERIE_TEST_DEVICE="$vulkan" AERIE_TEST_PROMPTS=2 "$suite/bin/lossless_test" '--gtest_filter=*EveryDrafter*'
  check vulkan same_bits_as_cpu 60 env AERIE_TEST_DEVICE="$vulkan" "$suite/bin/same_bits_test"
  for weights in f16 q8_0; do bench "$vulkan" llama-2-7b "$weights"; done
fi
# The quick tests again under each tool.
quick='--gtest_filter=*RowsTest*/cuda:*BeamTest*/cuda:*QuantisedTest.MatmulAdds*/cuda:*MatmulTest.AddsBias*/cuda:*AttentionTest.TreesEqual*/cuda:*ChoiceTest.Extremes*/cuda'
for tool in memcheck racecheck initcheck synccheck; do
  check sanitizer "$tool" 40 compute-sanitizer --tool "$tool" --error-exitcode 1 "$suite/bin/ops_test" "$quick"
done

gpu=$("$suite/bin/aerie" devices 2>/dev/null | grep "^$device " || echo "$device is not listed")
{
  printf '{"schema": "aerie-gpu-report-1", "device": "%s", "date": "%s", "checks": [\n  ' "$(printf %s "$gpu" | escape)" "$(date -u +%FT%TZ)"
  first=1
  for result in "${results[@]}"; do
    [ $first = 1 ] || printf ',\n  '
    first=0
    printf %s "$result"
  done
  printf '\n]}\n'
} >"$out/gpu_report.json"
{
  printf '# The GPU backends, checked %s\n\n%s\n\n| section | check | seconds | result |\n|---|---|---|---|\n' "$(date -u +%FT%TZ)" "$gpu"
  printf '%s\n' "${rows[@]}"
} >"$out/gpu_report.md"
echo "$out/gpu_report.md, $out/gpu_report.json; $failures of ${#results[@]} did not pass"
[ "$failures" -eq 0 ]
