#!/bin/bash
# buf lint over the contract: rules STANDARD and COMMENTS (buf.yaml).
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/npm_tools.sh
tools/node_modules/.bin/buf lint
