#!/bin/bash
# Installs the npm tools that tools/package-lock.json pins (buf, clients of gRPC and Connect, Kubernetes schemas) into tools/node_modules, when they
# are missing or older than the lock file.
set -euo pipefail
cd "$(dirname "$0")/../tools"

stamp=node_modules/.installed-lock
if cmp -s package-lock.json "$stamp"; then
  exit 0
fi
npm ci --ignore-scripts --no-audit --no-fund
cp package-lock.json "$stamp"
