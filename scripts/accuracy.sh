#!/bin/bash
# Makes the accuracy table and pictures again from the committed measurements and fold constants. Predicts, fits nothing.
#   scripts/accuracy.sh [--check] [BUILD_DIRECTORY]
# --check: compares the table with the committed one instead of replacing it.
set -euo pipefail
cd "$(dirname "$0")/.."
check=
if [[ ${1:-} == --check ]]; then
  check=yes
  shift
fi
tool=${1:-build/release}/bin/sliceplan-calibrate
data=tests/accuracy/data
inputs=()
[[ -e $data/training.csv ]] && inputs+=(--training "$data/training.csv")
[[ -e $data/serving.csv ]] && inputs+=(--serving "$data/serving.csv")
[[ -e $data/end_to_end.csv ]] && inputs+=(--end-to-end "$data/end_to_end.csv")
[[ -e tests/accuracy/folds.csv ]] && inputs+=(--folds tests/accuracy/folds.csv)

if [[ -n $check ]]; then
  made=$(mktemp)
  trap 'rm -f "$made"' EXIT
  "$tool" accuracy "${inputs[@]}" --out "$made"
  if ! diff -u tests/accuracy/accuracy.csv "$made"; then
    echo "tests/accuracy/accuracy.csv is not what the tool makes: run make calibrate" >&2
    exit 1
  fi
else
  "$tool" accuracy "${inputs[@]}" --out tests/accuracy/accuracy.csv
  mkdir -p docs/images
  "$tool" plots "${inputs[@]}" --out docs/images
fi
