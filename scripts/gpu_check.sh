#!/usr/bin/env bash
# Checks and measures the CUDA backend on a machine with an NVIDIA GPU, within nine minutes: op tests, bit-identity, comparison
# with the CPU, compute-sanitizer, benches. Needs the folder that the target gpu_suite makes; writes gpu_report.json and .md.
#   gpu_check.sh [--only ops,lossless,compare,sanitizer,bench] [--suite FOLDER] [--out FOLDER] [--device cuda:N]
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
suite=$here/build/gpu_suite
[ -d "$here/bin" ] && suite=$here # this script within the folder
only=ops,lossless,compare,sanitizer,bench
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
export AERIE_TEST_ROOT=$suite AERIE_TEST_DEVICE=$device
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
      0) result=passed ;;
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
# The quick tests again under each tool.
quick='--gtest_filter=*RowsTest*/cuda:*BeamTest*/cuda:*QuantisedTest.MatmulAdds*/cuda:*MatmulTest.AddsBias*/cuda:*AttentionTest.TreesEqual*/cuda:*ChoiceTest.Extremes*/cuda'
for tool in memcheck racecheck initcheck synccheck; do
  check sanitizer "$tool" 60 compute-sanitizer --tool "$tool" --error-exitcode 1 "$suite/bin/ops_test" "$quick"
done
for weights in f16 q8_0 q4_0; do
  check bench "llama-2-7b_$weights" 60 sh -c '"$0" bench --device "$1" --like llama-2-7b --weights "$2" --seconds 20 --json -q >"$3"' \
    "$suite/bin/aerie" "$device" "$weights" "$out/bench_llama-2-7b_$weights.json"
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
  printf '# CUDA backend, checked %s\n\n%s\n\n| section | check | seconds | result |\n|---|---|---|---|\n' "$(date -u +%FT%TZ)" "$gpu"
  printf '%s\n' "${rows[@]}"
} >"$out/gpu_report.md"
echo "$out/gpu_report.md, $out/gpu_report.json; $failures of ${#results[@]} did not pass"
[ "$failures" -eq 0 ]
