#!/usr/bin/python3
"""buf curl, a client of its own make, with nothing but the server's reflection."""

import json
import os
import subprocess
import sys
import unittest

import harness
from harness import REPOSITORY, Settings
import questions
from running_server import RunningServer

STATUS_PER_CODE = 8  # buf's exit status of a failed call is 8 x its gRPC code
INVALID_ARGUMENT = 3
PLANNER = "sliceplan.v1.PlannerService"


class BufCurl(unittest.TestCase):
    """gRPC over plaintext HTTP/2."""

    @classmethod
    def setUpClass(cls):
        cls.server = RunningServer("--drain_delay=0s")
        cls.addClassCleanup(cls.server.kill)

    def curl(self, path, *arguments, request=None):
        return subprocess.run(
            [Settings.buf, "curl", "--protocol", "grpc", "--http2-prior-knowledge", *arguments,
             *(("--data", "@-") if request is not None else ()), f"http://{self.server.address}{path}"],
            input=None if request is None else json.dumps(request), capture_output=True, text=True, timeout=120,
            check=False)

    def test_lists_services_and_methods(self):
        services = self.curl("", "--list-services")
        self.assertEqual(services.returncode, 0, services.stderr)
        listed = services.stdout.split()
        for service in (PLANNER, "sliceplan.v1.AnalysisService", "sliceplan.v1.CatalogService",
                        "grpc.health.v1.Health"):
            self.assertIn(service, listed)
        methods = self.curl("", "--list-methods")
        self.assertEqual(methods.returncode, 0, methods.stderr)
        self.assertIn(f"{PLANNER}/EstimateTraining", methods.stdout.split())
        self.assertIn("grpc.health.v1.Health/Check", methods.stdout.split())

    def test_answer(self):
        ended = self.curl(f"/{PLANNER}/EstimateTraining",
                          request=questions.llama_training(questions.FSDP_CONTEXT, **questions.ROOFLINE))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        estimate = json.loads(ended.stdout)["estimate"]
        self.assertEqual(estimate["chipCount"], 8192)
        self.assertEqual(estimate["bottleneck"]["resource"], "RESOURCE_ICI")

    def test_five_violations(self):
        ended = self.curl(f"/{PLANNER}/EstimateTraining", request=questions.FIVE_VIOLATIONS)
        self.assertEqual(ended.returncode, STATUS_PER_CODE * INVALID_ARGUMENT, ended.stderr)
        for field in questions.FIVE_FIELDS:
            self.assertIn(field, ended.stderr)
        error = json.loads(ended.stderr)
        self.assertEqual(error["code"], "invalid_argument")
        self.assertEqual([detail["type"] for detail in error["details"]],
                         ["google.rpc.BadRequest", "google.rpc.ErrorInfo"])

    def test_field_that_the_contract_does_not_have(self):
        ended = self.curl(f"/{PLANNER}/EstimateTraining", request={"modle": {}})
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("modle", ended.stderr)


class BufCurlOverHttp(unittest.TestCase):
    """The Connect protocol over HTTP/1.1, types from the contract."""

    def test_answer_and_violations(self):
        with RunningServer("--drain_delay=0s", "--http_port=0") as server:
            def curl(request):
                return subprocess.run(
                    [Settings.buf, "curl", "--protocol", "connect", "--schema", os.path.join(REPOSITORY, "proto"),
                     "--data", "@-", f"http://127.0.0.1:{server.http_port}/{PLANNER}/EstimateTraining"],
                    input=json.dumps(request), capture_output=True, text=True, timeout=120, check=False)

            ended = curl(questions.llama_training(questions.FSDP_CONTEXT, **questions.ROOFLINE))
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual(json.loads(ended.stdout)["estimate"]["chipCount"], 8192)
            ended = curl(questions.FIVE_VIOLATIONS)
            self.assertEqual(ended.returncode, STATUS_PER_CODE * INVALID_ARGUMENT, ended.stderr)
            for field in questions.FIVE_FIELDS:
                self.assertIn(field, ended.stderr)


if __name__ == "__main__":
    harness.main(sys.modules["__main__"])
