#!/bin/bash
# scripts/run_tests.sh PRESET [CTEST ARGUMENT...]: runs the tests of a built preset in random order. Results, for
# scripts/summary.py: build/PRESET/ctest.xml, and build/PRESET/test-results/ with every single GoogleTest case.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
results=build/$preset/test-results
rm -rf "$results" "build/$preset/ctest.xml"
mkdir -p "$results"
ctest --preset "$preset" --schedule-random --no-tests=error --parallel "$(nproc)" \
  --output-junit "$PWD/build/$preset/ctest.xml" "$@"
