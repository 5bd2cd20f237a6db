#!/bin/bash
# Makes the accuracy tables and pictures again from the committed measurements and fold constants. Predicts, fits nothing.
#   scripts/accuracy.sh [--check] [BUILD_DIRECTORY]
# --check: compares the tables with the committed ones instead of replacing them.
# accuracy.csv is of the tables that profiles are fitted to, accuracy_unseen.csv of those that nothing is fitted on,
# accuracy_machine.csv of one machine with the profile that six of its runs give. regret*.csv, of the same tables: what the
# plan ranked first costs where several plans of one job were measured.
set -euo pipefail
cd "$(dirname "$0")/.."
check=
if [[ ${1:-} == --check ]]; then
  check=yes
  shift
fi
tool=${1:-build/release}/bin/sliceplan-calibrate
folds=()
[[ -e tests/accuracy/folds.csv ]] && folds=(--folds tests/accuracy/folds.csv)

# Sets `inputs`: flags for the tables of the given suffix that are there.
find_inputs() {
  inputs=("${folds[@]}")
  local kind file
  for kind in training serving end_to_end; do
    file=tests/accuracy/data/$kind$1.csv
    [[ ! -e $file ]] || inputs+=("--${kind//_/-}" "$file")
  done
  [[ $1 != _machine ]] || inputs+=(--catalog-dir tests/accuracy/profiles)
}

status=0
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
for suffix in '' _unseen _machine; do
  find_inputs "$suffix"
  committed=tests/accuracy/accuracy$suffix.csv
  regret=tests/accuracy/regret$suffix.csv
  if [[ -z $check ]]; then
    "$tool" accuracy "${inputs[@]}" --out "$committed" --regret-out "$regret"
    continue
  fi
  "$tool" accuracy "${inputs[@]}" --out "$made/accuracy.csv" --regret-out "$made/regret.csv"
  for file in "$committed" "$regret"; do
    kind=$(basename "$file" "$suffix.csv")
    if ! diff -u "$file" "$made/$kind.csv"; then
      echo "$file is not what the tool makes: run make calibrate" >&2
      status=1
    fi
  done
done
if [[ -z $check ]]; then
  find_inputs ''
  mkdir -p docs/images
  rm -f docs/images/*_predicted.svg docs/images/*_residuals.svg
  "$tool" plots "${inputs[@]}" --out docs/images
fi
exit "$status"
