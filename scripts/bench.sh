#!/bin/bash
# Builds and runs every benchmark program of the preset release; arguments go to each (for example
# --benchmark_filter=Training).
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh release
programs=(build/release/bench/*)
[[ -x ${programs[0]} ]] || { echo "$0: no benchmark in build/release/bench" >&2; exit 1; }
for program in "${programs[@]}"; do
  echo "==== $program"
  "$program" "$@"
done
