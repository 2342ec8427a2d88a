#!/usr/bin/env bash
# Builds aerie and lets the bundled SmolLM2 answer questions, with drafted tokens in another colour, and shows how much
# faster each answer was than without drafting. Arguments, if any, replace the questions: scripts/demo.sh "Who was Ada
# Lovelace?"
set -euo pipefail
cd "$(dirname "$0")/.."

# CUDA kernels take most of a build, so they are built only for an NVIDIA card that is here.
cuda=(-DAERIE_CUDA=OFF)
if capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null) && [ -n "$capability" ] &&
  command -v nvcc "${CUDA_PATH:-/usr/local/cuda}/bin/nvcc" >/dev/null; then
  cuda=(-DAERIE_CUDA=ON "-DAERIE_CUDA_ARCHITECTURES=$(tr -d . <<<"$capability" | sort -u | paste -sd ';')")
fi

scripts/setup.sh
cmake --preset release -DAERIE_TESTS=OFF "${cuda[@]}" >/dev/null
if [ ! -x build/aerie ]; then
  # One core compiles the program in about 15 minutes.
  echo "demo: building, once: about $((15 / $(nproc) + 1)) minutes on $(nproc) cores" >&2
fi
start=$SECONDS
cmake --build --preset release --target aerie >&2
echo "demo: built in $((SECONDS - start)) s" >&2

questions=("$@")
if [ ${#questions[@]} -eq 0 ]; then
  questions=(
    'Why is the sky blue?'
    'Answer from the text. The train to Bern leaves at 8:15 from platform 4. The train to Basel leaves at 8:40 from platform 7. When and where does the train to Basel leave?'
    'Which animals are named in this text? The cat sits on the mat and looks at the birds. The dog runs in the park and plays with the children. The fish swims in the pond.'
    'Rewrite this text in the past tense: The cat sits on the mat and looks at the birds. The dog runs in the park and plays with the children. The fish swims in the pond.'
  )
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bold='' dim='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; fi
for question in "${questions[@]}"; do
  printf '\n%s> %s%s\n' "$bold" "$question" "$plain"
  # The likeliest tokens: two demos say the same, so that their figures can be compared.
  build/aerie generate --chat --shade -n 160 --temp 0 --compare-plain -p "$question" 2>"$work/figures" || {
    tail -n 3 "$work/figures" >&2
    exit 1
  }
  # "160 tokens, 44 of them drafted, ..." and "speed: 131.0 tokens/s plainly, 152.5 with drafting: ..."
  figures=$(sed -n -e 's/^\([0-9]*\) tokens, \([0-9]*\) of them drafted, .*/\1 \2/p' \
    -e 's/^speed: \([0-9.]*\) tokens\/s plainly, \([0-9.]*\) with drafting.*/\1 \2/p' "$work/figures" | paste -sd ' ')
  [ "$(wc -w <<<"$figures")" -eq 4 ] || continue  # an answer of one token has no speed
  printf '%s %s\n' "$figures" "$question" >>"$work/all"
  awk -v dim="$dim" -v plain="$plain" '{
    printf "%s%d of %d tokens were drafted: %.1f tokens/s, %.1f without drafting, the same text%s\n", dim, $2, $1, $4, $3, plain
  }' <<<"$figures"
done

[ -s "$work/all" ] || exit 0
# Answers are weighted by their tokens: seconds without drafting over seconds with it.
awk '{
  without += $1 / $3; with += $1 / $4; tokens += $1; drafted += $2
  if ($4 / $3 > best) { best = $4 / $3; name = $0; for (i = 0; i < 4; ++i) sub(/^[^ ]+ /, "", name) }
}
END {
  printf "\nAll answers: %.2f times as fast with drafting, %d of %d tokens drafted, not one token changed.\n", without / with, drafted, tokens
  printf "Drafting helped most (%.2f times) with: %s\n", best, name
}' "$work/all"
cat <<'END'
SmolLM2 has no draft head yet: what is drafted is what followed the same words earlier in the question or the answer, so
it helps where a text repeats itself. A head drafts new text as well.

Go on with:
  build/aerie chat --shade                    # talk to it
  build/aerie serve                           # a chat page and OpenAI's API, at the address that it prints
  build/aerie generate -m MODEL.gguf --chat --compare-plain -p "Why is the sky blue?"    # a model of yours
END
