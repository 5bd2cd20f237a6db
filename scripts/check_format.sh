#!/bin/bash
# Fails, naming file and line, when a C++ file is not laid out as .clang-format has it. `make format` repairs.
set -euo pipefail
cd "$(dirname "$0")/.."
places=$(scripts/sources.sh | xargs -r -n 16 -P "$(nproc)" clang-format-14 --dry-run 2>&1 |
  sed -nE 's/^([^:]+:[0-9]+):[0-9]+: (warning|error): .*/\1: not laid out as .clang-format has it/p' | sort -u)
if [[ -n $places ]]; then
  echo "$places"
  exit 1
fi
