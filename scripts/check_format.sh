#!/bin/bash
# Fails, naming file and line, when a C++ file is not laid out as .clang-format has it. `make format` repairs.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/sources.sh | xargs -r -n 16 -P "$(nproc)" clang-format-14 --dry-run -Werror
