#!/bin/bash
# Fits the profiles to the committed measurements without each group in turn: tests/accuracy/folds.csv, which
# scripts/accuracy.sh reads. Takes a few minutes; prints the fits.
#   scripts/folds.sh [BUILD_DIRECTORY]
# Folds of the users' corpus are linear about the fit of all its rows, which is two steps from the catalog's constants; what
# they leave out is predicted in full.
# The slow machine of SimuMax is not fitted to; of the users' corpus only runs of one pool are.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=${1:-build/release}/bin/sliceplan-calibrate
data=tests/accuracy/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fit() {
  "$tool" fit --priors plan --plan tests/accuracy/fit_plan.csv "$@"
}
grep -v ^SIMU "$data/training.csv" > "$work/training.csv"
grep -v ,disagg, "$data/end_to_end.csv" > "$work/end_to_end.csv"
fit --training "$work/training.csv" --serving "$data/serving.csv" --folds-out "$work/first.csv" \
  --profile maxtext-tpu --profile megatron-gpu --profile fsdp-torch-gpu --profile jax-serving-tpu \
  --profile fastertransformer-gpu --profile torch-compile-gpu
fit --linear-folds --max-iterations 2 --end-to-end "$work/end_to_end.csv" --folds-out "$work/second.csv" --profile vllm-gpu
{
  cat "$work/first.csv"
  tail -n +2 "$work/second.csv"
} > tests/accuracy/folds.csv
