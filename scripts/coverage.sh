#!/bin/bash
# Builds and runs the tests with line counters and prints line coverage of server/ and client/ per file;
# build/coverage/report.html has the lines.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh coverage
find build/coverage -name '*.gcda' -delete
scripts/run_tests.sh coverage
gcovr --root . --filter server/ --filter client/ --exclude-throw-branches --print-summary \
  --txt - --html-details build/coverage/report.html build/coverage
