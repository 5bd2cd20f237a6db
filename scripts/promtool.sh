#!/bin/bash
# Runs promtool: the one on PATH, or else Debian's, unpacked into build/tools. Not installed, because Debian's package
# `prometheus` also starts a server.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
if command -v promtool >/dev/null; then
  exec promtool "$@"
fi
tool=$root/build/tools/usr/bin/promtool
if [[ ! -x $tool ]]; then
  download=$(mktemp -d)
  trap 'rm -rf "$download"' EXIT
  # Says nothing unless it fails: callers read what promtool says.
  (cd "$download" && apt-get download -q prometheus >log 2>&1) || { cat "$download/log" >&2; exit 1; }
  mkdir -p "$root/build/tools"
  dpkg-deb --fsys-tarfile "$download"/prometheus_*.deb | tar -x -C "$root/build/tools" ./usr/bin/promtool
  rm -rf "$download"
fi
exec "$tool" "$@"
