#!/bin/sh
# Fuzzes every reader of untrusted bytes: scripts/fuzz.sh [RUNS [TARGET...]]; prints one line per target.
# Exits with 1 if a target found something; the input is then in build-fuzz/found/.
set -eu
cd "$(dirname "$0")/.."
runs=${1:-1000000}
[ $# -gt 0 ] && shift
targets=${*:-safetensors gguf torch_bin torch_pickle json_config tokenizer tokenizer_json small_files text_stream jinja json_request http_request}
build=build-fuzz

cmake -S . -B $build -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DAERIE_FUZZ=ON -DAERIE_TESTS=OFF -DAERIE_SANITIZE=fuzzer-no-link,address,undefined \
    -DCMAKE_CXX_FLAGS=-fno-sanitize-recover=all >/dev/null
ninja -C $build fuzz_targets >$build/build.log || { cat $build/build.log; exit 1; }
mkdir -p $build/found
$build/tests/fuzz/fuzz_seeds $build/seeds .

failed=0
for target in $targets; do
    corpus=$build/corpus/$target
    log=$build/$target.log
    mkdir -p "$corpus"
    start=$(date +%s)
    result=ok
    "$build/tests/fuzz/fuzz_$target" -runs="$runs" -max_len=6144 -timeout=10 -rss_limit_mb=1024 \
        -print_final_stats=1 -artifact_prefix="$build/found/$target-" \
        "$corpus" "$build/seeds/$target" >"$log" 2>&1 || { result="FOUND, see $log"; failed=1; }
    done=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    echo "fuzz_$target: ${done:-0} runs, $(($(date +%s) - start)) s, $result"
done
exit $failed
