#!/usr/bin/env bash
# Runs tests with sanitizers: memory and undefined behaviour (build-asan), then threads (build-tsan). Without an argument:
# what reads foreign bytes, the portable interfaces, and a kernel of each kind, as CI does at each submission. `--all` adds
# what takes many minutes: the CUDA kernels on the CPU, every instruction set, and texts of all drafters.
set -euo pipefail
cd "$(dirname "$0")/.."
all=''
[ "${1:-}" != --all ] || all=yes

# sanitized PRESET VULKAN PROGRAM...: builds test programs with the preset's sanitizers. Warnings are the release
# build's affair: g++ 12 sees uninitialised strings where there are none once it instruments.
sanitized() {
  cmake --preset "$1" -DAERIE_CUDA=OFF -DAERIE_VULKAN="$2"
  cmake --build --preset "$1" --target "${@:3}"
}
# run_sanitized PRESET TEST-PATTERN: as ctest knows them.
run_sanitized() { ctest --test-dir "build-$1" --output-on-failure --no-tests=error -j "$(nproc)" -LE long -R "^($2)\$"; }
# together COMMAND-LINE...: side by side, as many as there are cores.
together() { printf '%s\0' "$@" | xargs -0 -P "$(nproc)" -I{} bash -c '{}'; }

# Instrumented code is ten times slower: one prompt of one column of the bit-identity matrix.
export AERIE_TEST_PROMPTS=1 AERIE_TEST_RUNS=1000 AERIE_TEST_SCHEDULES=20
column="--from=lossless_test.cpp '--gtest_filter=*EveryDrafter/q8_0_by_q4_0_sampled'"

# Vulkan's drivers are not instrumented; portable kernels are the templates of AVX2's. Stack frames stay on the stack:
# g++ 12 would put vectors of 64 bytes at odd places elsewhere.
export ASAN_OPTIONS=detect_stack_use_after_return=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
programs=(core_test io_test text_test bpe_test jinja_test gguf_hostile_test model_test draft_test engine_test ops_test
  talk_file_test serve_test sockets_test api_test api_faults_test bad_input_test)
tests='core_test|io_test|text_test|bpe_test|jinja_test|gguf_hostile_test|model_test|draft_test|accept_test|schedules_test|fairness_test|convert_test|hostile_(files|heads)_test|limits_test|ops_(avx2|test)|talk_file_test|serve_test|sockets_test|api_test|api_faults_test|bad_input_test'
if [ -n "$all" ]; then
  programs+=(simt_ops_test)
  tests+='|ops_(avxvnni|avx512|amx|portable)|simt_quick_test'
fi
sanitized asan OFF "${programs[@]}"
run_sanitized asan "$tests"
engine=build-asan/tests/engine/engine_test
[ -z "$all" ] || together "$engine $column" \
  "AERIE_TEST_TOKENS=12 $engine --from=head_texts_test.cpp '--gtest_filter=*/q4_0_sampled'" \
  "AERIE_TEST_TOKENS=12 $engine --from=draft_model_test.cpp '--gtest_filter=*AreThose*/q4_0_sampled'" \
  "$engine --from=draft_model_state_test.cpp '--gtest_filter=*InOneBatch/narrow'"

# The CPU's pool, which is the same for each instruction set, Vulkan's pipelines, sessions of the library.
export TSAN_OPTIONS=halt_on_error=1
programs=(ops_test vulkan_test api_threads_test)
[ -z "$all" ] || programs+=(engine_test)
sanitized tsan ON "${programs[@]}"
run_sanitized tsan 'ops_avx2|ops_test|vulkan_test|api_threads_test'
[ -z "$all" ] || bash -c "build-tsan/tests/engine/engine_test $column"
