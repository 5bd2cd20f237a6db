#!/bin/bash
# Lays out every C++ file as .clang-format has it.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/sources.sh | xargs -r -n 16 -P "$(nproc)" clang-format-14 -i
