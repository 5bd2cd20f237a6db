"""What every end-to-end program shares: arguments, and results that scripts/summary.py counts case by case."""

import argparse
import os
import signal
import sys
import time
import unittest
import xml.etree.ElementTree as ElementTree

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Settings:
    """Paths of this run; set once by `main`."""

    server = ""
    command = ""
    grpc_proto = ""  # root of the protos of Debian's package grpc-proto
    buf = ""
    sanitized = False


def read(*path):
    """Text of a file of the repository."""
    with open(os.path.join(REPOSITORY, *path), encoding="utf-8") as file:
        return file.read()


class _Result(unittest.TextTestResult):
    """Keeps name, seconds, failure and whether it was skipped of every case."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.cases = []
        self._failed = None
        self._skipped = False
        self._started = 0.0

    def startTest(self, test):
        super().startTest(test)
        self._failed = None
        self._skipped = False
        self._started = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        self.cases.append((test.id(), time.monotonic() - self._started, self._failed, self._skipped))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._skipped = True

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._failed = str(err[1])

    def addError(self, test, err):
        super().addError(test, err)
        self._failed = str(err[1])
        if not isinstance(test, unittest.TestCase):  # of a class's set-up
            self.cases.append((test.id(), 0.0, self._failed, False))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._failed = str(err[1])


def _write_results(cases, path):
    """In the form of GoogleTest's XML."""
    suite = ElementTree.Element("testsuite")
    for name, seconds, failure, skipped in cases:
        classname, _, method = name.rpartition(".")
        case = ElementTree.SubElement(suite, "testcase", classname=classname, name=method,
                                      result="skipped" if skipped else "completed", time=f"{seconds:.3f}")
        if failure is not None:
            text = "".join(c if c.isprintable() or c == "\n" else "?" for c in failure)
            ElementTree.SubElement(case, "failure").text = text
    os.makedirs(os.path.dirname(path), exist_ok=True)
    ElementTree.ElementTree(suite).write(path, encoding="unicode")


def main(*modules):
    """Runs the cases of the modules; the exit status says whether all passed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--command", required=True)
    parser.add_argument("--grpc-proto", default="/usr/share/grpc-proto")
    parser.add_argument("--buf", default=os.path.join(REPOSITORY, "tools", "node_modules", ".bin", "buf"))
    parser.add_argument("--sanitized", action="store_true", help="the programs carry sanitizers: no limit on memory")
    parser.add_argument("--results", help="XML file to write")
    parser.add_argument("-k", dest="pattern", help="only cases whose name contains this")
    arguments = parser.parse_args()
    for name in ("server", "command", "grpc_proto", "buf", "sanitized"):
        setattr(Settings, name, getattr(arguments, name))

    # Ended from outside: as by a key, which unittest lets pass and which still ends the servers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    loader = unittest.TestLoader()
    if arguments.pattern:
        loader.testNamePatterns = [f"*{arguments.pattern}*"]
    suite = unittest.TestSuite(loader.loadTestsFromModule(module) for module in modules)
    result = unittest.TextTestRunner(resultclass=_Result, verbosity=2).run(suite)
    if arguments.results:
        _write_results(result.cases, arguments.results)
    sys.exit(0 if result.wasSuccessful() and result.cases else 1)
