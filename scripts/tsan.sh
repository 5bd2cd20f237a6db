#!/bin/bash
# What runs on several threads, under the thread sanitizer: the search, the worker pool with its queue, the caches and the
# exchange of catalogs. gRPC and civetweb as Debian builds them are not instrumented and would be accused wrongly, so
# nothing here opens a socket.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh tsan planner_search_tests rpc_server_tests rpc_core_tests catalog_tests

tests=build/tsan/tests
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
"$tests/planner_search_tests" --gtest_brief=1
"$tests/rpc_server_tests" --gtest_brief=1 --gtest_filter='WorkerPool*:FairQueue*:*Log*:-*Server*'
"$tests/rpc_core_tests" --gtest_brief=1 --gtest_filter='*Cache*:*Lists*'
"$tests/catalog_tests" --gtest_brief=1 --gtest_filter='*Store*'
