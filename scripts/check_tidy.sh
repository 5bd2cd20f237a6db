#!/bin/bash
# clang-tidy over the engine rooms, with the flags of the preset asan (clang's own; configure it first).
# With arguments, over those files or directories instead.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ $# -eq 0 ]]; then
  set -- server/hardware server/roofline server/transformer server/planner
fi
scripts/sources.sh "$@" | grep '\.cc$' | xargs -r -n 1 -P "$(nproc)" clang-tidy-14 --quiet -p build/asan
