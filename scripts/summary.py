#!/usr/bin/python3
"""Counts the tests that scripts/run_tests.sh has run: every GoogleTest case, and every other ctest entry, is one.

usage: summary.py PRESET...    prints the failures and then "N passed, N failed"; fails when a test failed or none ran
"""

import os
import sys
import xml.etree.ElementTree as ElementTree

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def gtest_results(path):
    """(passed count, names of failed cases) of one GoogleTest program, or None when it left no readable result."""
    try:
        cases = ElementTree.parse(path).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return None
    passed, failed = 0, []
    for case in cases:
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"{case.get('classname')}.{case.get('name')}")
        elif case.get("result") == "completed":
            passed += 1
    return passed, failed


def count(build_directory):
    """(passed count, names of failed tests) of one build directory. A ctest run that left no result is one failure."""
    try:
        entries = ElementTree.parse(os.path.join(build_directory, "ctest.xml")).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return 0, [f"{build_directory}: no result of ctest"]
    passed, failed = 0, []
    for entry in entries:
        name, status = entry.get("name"), entry.get("status")
        if status == "disabled":
            continue
        cases = gtest_results(os.path.join(build_directory, "test-results", name + ".xml"))
        if cases is not None:
            passed += cases[0]
            failed += [f"{name}: {case}" for case in cases[1]]
        # A program may fail outside its cases: a crash, a sanitizer's finding at exit, a timeout, or not having run.
        if status == "run" and cases is None:
            passed += 1
        elif status != "run" and not (cases and cases[1]):
            failed.append(f"{name}: {status}")
    return passed, failed


def closing_line(passed, failed):
    return f"{passed} passed, {failed} failed"


def main():
    passed, failed = 0, []
    for preset in sys.argv[1:]:
        directory = os.path.join(REPOSITORY, "build", preset)
        counts = count(directory)
        passed += counts[0]
        failed += counts[1]
    for name in failed:
        print("FAILED", name)
    print(closing_line(passed, len(failed)))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
