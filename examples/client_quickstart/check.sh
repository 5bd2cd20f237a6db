#!/bin/bash
# examples/client_quickstart/check.sh [BUILD_DIRECTORY]: installs the client of a configured build (default
# build/release), builds this project against it as a stranger would, and runs it against that build's server.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "${1:-build/release}")
cmake --build "$build" --target sliceplan_client_package sliceplan-server

work=$(mktemp -d)
server=
# The server gets no second chance: nobody else calls it.
trap '[[ -z $server ]] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

cmake --install "$build" --component client --prefix "$work/prefix" >/dev/null
# A copy, so that nothing of the repository is in reach.
cp -r examples/client_quickstart "$work/project"
cmake -S "$work/project" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$work/build"

"$build/bin/sliceplan-server" --port=0 --drain_delay=0s >"$work/port" 2>"$work/log" &
server=$!
for _ in $(seq 100); do
  port=$(sed -n 's/^port=//p' "$work/port")
  [[ -z $port ]] || break
  sleep 0.1
done
[[ -n $port ]] || { cat "$work/log" >&2; exit 1; }

"$work/build/pick_slice" "dns:///localhost:$port" | tee "$work/answers"
grep -q 'OUTCOME_FEASIBLE' "$work/answers"
