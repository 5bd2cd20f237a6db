#!/usr/bin/python3
""".ci/run must end with the closing line of `make test` and have its status, whatever make prints after it."""

import os
import shutil
import subprocess
import tempfile
import unittest

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# What `make test` does, the recipe, whether it succeeds, the last line.
CASES = (
    ("passes", "@echo one; echo 12 passed, 0 failed", True, "12 passed, 0 failed"),
    ("fails", "@echo 11 passed, 1 failed; exit 1", False, "11 passed, 1 failed"),
    ("prints after its closing line", "@echo 12 passed, 0 failed; echo more; echo worse >&2", True, "12 passed, 0 failed"),
    ("dies before its closing line", "@echo one; false", False, "0 passed, 1 failed"),
)


class CiRun(unittest.TestCase):

    def test_cases(self):
        for name, recipe, succeeds, last_line in CASES:
            with self.subTest(name), tempfile.TemporaryDirectory() as root:
                os.mkdir(os.path.join(root, ".ci"))
                shutil.copy(os.path.join(REPOSITORY, ".ci/run"), os.path.join(root, ".ci/run"))
                with open(os.path.join(root, "Makefile"), "w", encoding="utf-8") as out:
                    out.write(f"test:\n\t{recipe}\n")
                result = subprocess.run([os.path.join(root, ".ci/run")], capture_output=True, text=True, check=False)
                self.assertEqual(result.returncode == 0, succeeds)
                self.assertEqual(result.stdout.splitlines()[-1], last_line)
                self.assertEqual(result.stdout.count(" passed, "), 1)


if __name__ == "__main__":
    unittest.main()
