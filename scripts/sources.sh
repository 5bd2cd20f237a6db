#!/bin/bash
# Prints the C++ files of the repository, one per line; with arguments, only those under the named directories.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files -z --cached --others --exclude-standard -- "${@:-.}" | tr '\0' '\n' | grep -E '\.(cc|h)$' | sort -u
