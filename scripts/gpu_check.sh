#!/usr/bin/env bash
# Checks and measures the CUDA backend on a machine with an NVIDIA GPU, within nine minutes: op tests, comparison with the CPU,
# bit-identity, benches, the same through Vulkan where that finds the GPU, compute-sanitizer. Runs in a copy of the repository, with
# the folder that the target gpu_suite made elsewhere (build/gpu_suite). Whatever is missing, fails or hangs is a line of the report
# and stops nothing else. Writes gpu_report.json, gpu_report.md and gpu_logs.txt, anew after every check.
#   gpu_check.sh [--only ops,compare,lossless,bench,vulkan,sanitizer] [--suite FOLDER] [--out FOLDER] [--device cuda:N]
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
sections=ops,compare,lossless,bench,vulkan,sanitizer
only=$sections suite=$here/build/gpu_suite out=. device=cuda:0
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
mkdir -p "$out" && : >"$out/gpu_logs.txt" || usage "$out cannot be written"
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
chmod -f +x "$suite"/bin/* # a copy may have lost it
export PATH=$PATH:/usr/local/cuda/bin XDG_CACHE_HOME=$work
export LD_LIBRARY_PATH=$suite/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export AERIE_TEST_ROOT=$here AERIE_MODELS=$here/models AERIE_TEST_DEVICE=$device
# Containers often have the driver, but nothing that tells the Vulkan loader of it.
icd=/usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json
[ -e "$icd" ] && [ -z "${VK_DRIVER_FILES:-}" ] && ! ls /etc/vulkan/icd.d/nvidia* /usr/share/vulkan/icd.d/nvidia* >/dev/null 2>&1 && export VK_DRIVER_FILES=$icd
readonly all_seconds=520 # of the 540: the last check needs a moment to be stopped
section_end=$all_seconds
results=() rows=() benches=() tables=() failures=0

escape() { sed 's/\\/\\\\/g; s/"/\\"/g' | LC_ALL=C tr -cd '\40-\176'; }
line() { timeout -k 2 20 "$@" 2>/dev/null </dev/null | head -1; }

gpu=$(timeout -k 2 20 "$suite/bin/aerie" devices 2>&1 </dev/null | grep -e "^$device " -e error -e 'not found' | head -1)
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
      if grep -q 'PASSED  \] 0 tests' "$2"; then
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
        echo "FAILED with $1: $(grep -E '^\[  FAILED  \]|aerie:|ERROR|rror:|xception|not found' "$2" | head -1 | cut -c1-200)" \
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
  timeout -k 2 20 "$suite/bin/ops_test" --gtest_list_tests "--gtest_filter=$filter" 2>"$work/err" </dev/null | grep '^[A-Za-z].*\.$' >"$work/suites"
  [ -s "$work/suites" ] || check "$2" op_tests 20 "$suite/bin/ops_test" "--gtest_filter=$filter"
  while read -r suite_name; do
    check "$2" "${suite_name//[^A-Za-z0-9]/}" "$3" "$suite/bin/ops_test" "--gtest_filter=$suite_name$filter"
  done <"$work/suites"
}
# bench SECTION DEVICE SHAPE WEIGHTS
bench() {
  local name=${2%%:*}_$3_$4
  check "$1" "$name" 50 "$suite/bin/aerie" bench --device "$2" --like "$3" --weights "$4" --seconds 15 --json || return
  benches+=("\"$name\": $(cat "$work/out")")
  tables+=("$(printf '\n## %s\n\n```\n%s\n```\n' "$name" "$(tr '\r' '\n' <"$work/err" | grep -v '^$')")")
  report
}

report
section ops 110 && op_suites '*/cuda' ops 60
section compare 40 && check compare same_bits_as_cpu 40 "$suite/bin/same_bits_test"
section lossless 80 && check lossless every_drafter 80 env AERIE_TEST_PROMPTS=4 "$suite/bin/lossless_test" '--gtest_filter=Types/*'
if section bench 200; then
  for weights in f16 q8_0 q4_0; do bench bench "$device" llama-2-7b "$weights"; done
  bench bench "$device" llama-3.1-8b f16
  check bench profile 30 "$suite/bin/aerie" bench --device "$device" --like llama-2-7b --weights f16 --rows 1,60 --seconds 3 --profile
  tables+=("$(printf '\n## Times by op\n\n```\n%s\n```\n' "$(tail -40 "$work/err")")")
fi
# The same GPU through Vulkan, where a loader finds it.
if section vulkan 200; then
  vulkan=$(timeout -k 2 30 "$suite/bin/aerie" devices 2>/dev/null </dev/null | awk '/^vulkan:/ && /NVIDIA|GeForce|Tesla/ { print $1; exit }')
  if [ -n "$vulkan" ]; then
    export AERIE_TEST_DEVICE=$vulkan
    for weights in f16 q8_0; do bench vulkan "$vulkan" llama-2-7b "$weights"; done
    check vulkan same_bits_as_cpu 40 "$suite/bin/same_bits_test"
    op_suites '*/vulkan' vulkan 60
    check vulkan every_drafter 60 env AERIE_TEST_PROMPTS=2 "$suite/bin/lossless_test" '--gtest_filter=*EveryDrafter*'
    export AERIE_TEST_DEVICE=$device
  else
    note vulkan devices 0 "not run: no Vulkan driver here finds an NVIDIA GPU"
  fi
fi
# The quick tests again under each tool.
if section sanitizer $all_seconds; then
  quick='*RowsTest*/cuda:*BeamTest*/cuda:*QuantisedTest.MatmulAdds*/cuda:*MatmulTest.AddsBias*/cuda:*AttentionTest.TreesEqual*/cuda:*ChoiceTest.Extremes*/cuda'
  for tool in memcheck racecheck initcheck synccheck; do
    check sanitizer "$tool" 40 compute-sanitizer --tool "$tool" --error-exitcode 1 "$suite/bin/ops_test" "--gtest_filter=$quick"
  done
fi
report
echo "$out/gpu_report.md, $out/gpu_report.json, $out/gpu_logs.txt; $failures of ${#rows[@]} did not pass"
[ "$failures" -eq 0 ]
