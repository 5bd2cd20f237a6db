#!/usr/bin/python3
"""The closing line must count every single test and must not lose a failure, whatever way a program fails."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts"))
import summary  # noqa: E402

GTEST_OK = ('<testsuites><testsuite name="A">'
            '<testcase name="x" status="run" result="completed" classname="A"/>'
            '<testcase name="y" status="run" result="completed" classname="A"/>'
            '</testsuite></testsuites>')
GTEST_FAILED = ('<testsuites><testsuite name="A">'
                '<testcase name="x" status="run" result="completed" classname="A"/>'
                '<testcase name="y" status="run" result="completed" classname="A">'
                '<failure message="1 != 2"/><failure message="2 != 3"/></testcase>'
                '<testcase name="z" status="run" result="skipped" classname="A"><skipped/></testcase>'
                '<testcase name="DISABLED_w" status="notrun" result="suppressed" classname="A"/>'
                '</testsuite></testsuites>')

# What happened, ctest's entries (name, status), GoogleTest results by name, passed, failed names.
CASES = (
    ("all pass", [("a", "run"), ("b", "run")], {"a": GTEST_OK, "b": GTEST_OK}, 4, []),
    ("a script passes", [("a", "run"), ("script", "run")], {"a": GTEST_OK}, 3, []),
    ("a script fails", [("a", "run"), ("script", "fail")], {"a": GTEST_OK}, 2, ["script: fail"]),
    ("a case fails", [("a", "fail")], {"a": GTEST_FAILED}, 1, ["a: A.y"]),
    ("fails after all cases passed", [("a", "fail")], {"a": GTEST_OK}, 2, ["a: fail"]),
    ("crashes before it writes", [("a", "fail"), ("b", "run")], {"b": GTEST_OK}, 2, ["a: fail"]),
    ("crashes while it writes", [("a", "fail")], {"a": GTEST_OK[:60]}, 0, ["a: fail"]),
    ("not built", [("a", "notrun")], {}, 0, ["a: notrun"]),
    ("disabled", [("a", "run"), ("off", "disabled")], {"a": GTEST_OK}, 2, []),
)


class Summary(unittest.TestCase):

    def count(self, entries, gtest):
        with tempfile.TemporaryDirectory() as directory:
            os.mkdir(os.path.join(directory, "test-results"))
            with open(os.path.join(directory, "ctest.xml"), "w", encoding="utf-8") as out:
                out.write("<testsuite>")
                for name, status in entries:
                    out.write(f'<testcase name="{name}" classname="{name}" time="1" status="{status}"/>')
                out.write("</testsuite>")
            for name, text in gtest.items():
                with open(os.path.join(directory, "test-results", name + ".xml"), "w", encoding="utf-8") as out:
                    out.write(text)
            return summary.count(directory)

    def test_cases(self):
        for name, entries, gtest, passed, failed in CASES:
            with self.subTest(name):
                self.assertEqual(self.count(entries, gtest), (passed, failed))

    def test_no_result_is_a_failure(self):
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual(summary.count(directory), (0, [f"{directory}: no result of ctest"]))

    def test_closing_line(self):
        self.assertEqual(summary.closing_line(12, 3), "12 passed, 3 failed")


if __name__ == "__main__":
    unittest.main()
