#!/usr/bin/python3
"""Runs everything that CI runs, each step also runnable alone, and goes on after a failure: one run shows all there is.

usage: check_all.py [STEP...]   all steps but the slow ones, or the named ones; --list prints them

The last line is "N passed, N failed": the single tests of the test steps, and each other step as one.
"""

import os
import subprocess
import sys
import time

import summary

REPOSITORY = summary.REPOSITORY
FUZZ_SECONDS = "60"

# Name, command, and the step without which it makes no sense. Cheap checks first.
STEPS = (
    ("arrows", ["scripts/check_arrows.py"], None),
    ("format", ["scripts/check_format.sh"], None),
    ("contract", ["scripts/check_proto.sh"], None),
    ("deploy", ["scripts/check_deploy.py"], None),
    ("build-release", ["scripts/build.sh", "release"], None),
    ("test-release", ["scripts/run_tests.sh", "release"], "build-release"),
    ("build-asan", ["scripts/build.sh", "asan"], None),
    ("test-asan", ["scripts/run_tests.sh", "asan"], "build-asan"),
    ("fuzz", ["scripts/fuzz.sh", FUZZ_SECONDS], "build-asan"),
    # Slow; by name only.
    ("tsan", ["scripts/tsan.sh"], None),
    ("tidy", ["scripts/check_tidy.sh"], "build-asan"),
)
ON_REQUEST = ("tsan", "tidy")


def run_step(name, command):
    """(passed count, names of what failed, seconds)."""
    print(f"\n==== {name}: {' '.join(command)}", flush=True)
    started = time.monotonic()
    status = subprocess.run(command, cwd=REPOSITORY, check=False).returncode
    seconds = time.monotonic() - started
    if not name.startswith("test-"):
        return (0, [name], seconds) if status else (1, [], seconds)
    passed, failed = summary.count(os.path.join(REPOSITORY, "build", name[len("test-"):]))
    if status and not failed:
        failed = [f"{name}: status {status}"]
    return passed, failed, seconds


def main():
    names = [name for name, _, _ in STEPS]
    wanted = sys.argv[1:] or [name for name in names if name not in ON_REQUEST]
    if wanted == ["--list"]:
        print("\n".join(names))
        return 0
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        print(f"no such step: {', '.join(unknown)}; there are {', '.join(names)}", file=sys.stderr)
        return 2

    report, failures, passed_total, broken = [], [], 0, set()
    for name, command, needed in STEPS:
        if name not in wanted:
            continue
        if needed in broken:
            passed, failed, seconds = 0, [f"{name}: not run, {needed} failed"], 0.0
        else:
            passed, failed, seconds = run_step(name, command)
        if failed:
            broken.add(name)
        passed_total += passed
        failures += failed
        report.append(f"{name:<14} {seconds:7.1f} s   {summary.closing_line(passed, len(failed))}")

    # Indented, so that only the last line of all is the closing line.
    print("\n" + "\n".join("  " + line for line in report))
    for failure in failures:
        print("FAILED", failure)
    print(summary.closing_line(passed_total, len(failures)), flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
