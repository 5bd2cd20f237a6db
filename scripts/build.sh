#!/bin/bash
# scripts/build.sh PRESET [TARGET...]: configures build/PRESET and builds the targets, or everything.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
cmake --preset "$preset"
if [[ $# -gt 0 ]]; then
  set -- --target "$@"
fi
cmake --build --preset "$preset" "$@"
