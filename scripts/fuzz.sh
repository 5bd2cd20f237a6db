#!/bin/bash
# scripts/fuzz.sh [SECONDS=60]: runs every fuzz target of the preset asan, the time shared between them. What they learn
# stays in build/fuzz-corpus; an input that breaks something is written to build/fuzz-findings and named.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}

targets=(build/asan/fuzz/*)
[[ -x ${targets[0]} ]] || { echo "$0: no fuzz target in build/asan/fuzz: run scripts/build.sh asan" >&2; exit 1; }
mkdir -p build/fuzz-findings
for target in "${targets[@]}"; do
  name=$(basename "$target")
  corpora=("build/fuzz-corpus/$name")
  mkdir -p "${corpora[0]}"
  # Committed seeds; libFuzzer writes to the first directory only.
  [[ -d tests/fuzz/corpus/$name ]] && corpora+=("tests/fuzz/corpus/$name")
  options=(-max_total_time=$((seconds / ${#targets[@]})) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1)
  options+=("-artifact_prefix=build/fuzz-findings/$name-")
  [[ -f tests/fuzz/$name.dict ]] && options+=("-dict=tests/fuzz/$name.dict")
  "$target" "${options[@]}" "${corpora[@]}"
done
