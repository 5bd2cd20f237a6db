#!/usr/bin/python3
"""The command: what it prints, in process and over a server, and how it fails."""

import json
import os
import re
import shlex
import subprocess
import sys
import unittest

import harness
from harness import REPOSITORY, Settings
import questions
from running_server import RunningServer


def run(*arguments, text=None):
    return subprocess.run([Settings.command, *arguments], cwd=REPOSITORY, input=text, capture_output=True, text=True,
                          timeout=120, check=False)


def call(method, request, *arguments):
    return run("call", method, "--request=-", *arguments, text=json.dumps(request))


def make_run_flags():
    """What `make run` asks."""
    makefile = harness.read("Makefile").replace("\\\n", " ")
    return shlex.split(re.search(r"^RUN_FLAGS := (.*)$", makefile, re.MULTILINE).group(1))


class Train(unittest.TestCase):
    """sliceplan train."""

    def test_what_make_run_prints(self):
        ended = run("train", *make_run_flags())
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        # Chips, tokens a step, the chip's peak, tokens per chip: those that it has and those that FSDP alone and FSDP
        # with the best tensor degree need (2550 / 3 and 2550^2 / (2 x 28672)).
        for part in ("8,192 chips", "4,194,304", "459 TFLOP/s", "512", "850", "113"):
            self.assertIn(part, ended.stdout)
        self.assertIsNone(re.search(r"\b(nan|inf)\b", ended.stdout, re.IGNORECASE))

    def test_json_is_the_reply(self):
        printed = run("train", *make_run_flags(), "--format=json")
        self.assertEqual((printed.returncode, printed.stderr), (0, ""))
        answered = call("PlannerService/EstimateTraining", questions.llama_training(questions.FSDP_CONTEXT_TENSOR))
        self.assertEqual(answered.returncode, 0, answered.stderr)
        self.assertEqual(json.loads(printed.stdout), json.loads(answered.stdout))

    def test_job_that_does_not_fit_is_an_answer(self):
        ended = run("train", "--model", "llama-3-70b", "--slice", "v5e:2x2", "--batch", "4", "--sequence", "4096")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, r"^(OUT OF MEMORY|OUT_OF_MEMORY|NO_LEGAL_PLAN|DOES NOT FIT)")

    def test_arguments_that_cannot_be_read(self):
        for arguments in (("train", "--bogus"), ("train", "--model", "llama-3-70b"), ("nonsense",),
                          ("train", "--model", "no-such-file.json", "--slice", "v5p-256", "--batch-tokens", "lots")):
            ended = run(*arguments)
            self.assertEqual((ended.returncode, ended.stdout), (1, ""), arguments)
            self.assertTrue(ended.stderr)

    def test_what_the_service_refuses(self):
        ended = run("train", "--model", "lama-3-70b", "--slice", "v5p-256")
        self.assertEqual((ended.returncode, ended.stdout), (2, ""))
        self.assertIn("llama-3-70b", ended.stderr)


class ShardServing(unittest.TestCase):
    """sliceplan shard --serve."""

    FLAGS = ("shard", "--serve", "--model", "llama-3-8b", "--prompt", "1000", "--output", "200", "--rate", "5",
             "--tpot-p95", "100ms", "--slice", "tpu-v5e:2x4", "--slice", "h100:8")

    def test_json_is_the_reply_and_the_table_says_the_same(self):
        printed = run(*self.FLAGS, "--format=json")
        self.assertEqual((printed.returncode, printed.stderr), (0, ""))
        reply = json.loads(printed.stdout)
        answered = json.loads(call("PlannerService/ProposeSharding", questions.SERVING_SEARCH).stdout)
        for one in (reply, answered):
            del one["search"]["elapsedSeconds"]
        self.assertEqual(reply, answered)
        table = run(*self.FLAGS)
        self.assertEqual((table.returncode, table.stderr), (0, ""))
        self.assertTrue(table.stdout.startswith("Serving llama-3-8b: the best of 2 slices"))
        slice_ = reply["proposals"][0]["pools"][0]["slice"]["slice"]
        first = next(line for line in table.stdout.splitlines() if line.strip().startswith("1 "))
        self.assertIn(f"{slice_['accelerator']} {slice_['topology']}", first)

    def test_emit_prints_the_command_alone(self):
        emitted = run("shard", "--serve", "--model", "llama-3-70b", "--weights", "fp8", "--rate", "5",
                      "--slice", "h100:8", "--objective", "cost", "--emit", "vllm")
        self.assertEqual((emitted.returncode, emitted.stderr), (0, ""))
        self.assertIn("\nvllm serve ", emitted.stdout)
        self.assertNotIn("best of", emitted.stdout)

    def test_flags_of_training_are_refused(self):
        ended = run(*self.FLAGS, "--tokens", "1T")
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertIn("--tokens is for training, not for --serve", ended.stderr)


class Call(unittest.TestCase):
    """sliceplan call."""

    def test_server_and_process_answer_alike(self):
        with RunningServer("--drain_delay=0s") as server:
            for method, request in (
                    ("PlannerService/EstimateTraining", questions.llama_training(questions.FSDP_CONTEXT)),
                    ("PlannerService/EstimateTraining", questions.FIVE_VIOLATIONS),
                    ("PlannerService/EstimateServing", questions.SERVING_BATCH),
                    ("PlannerService/EstimateServing", {}),
                    ("sliceplan.v1.AnalysisService/DescribeModel", {"model": {"preset": "deepseek-v3"}}),
                    ("CatalogService/ListSlices", {"filter": 'accelerator="tpu-v6e"'}),
                    ("CatalogService/ListPrices", {"page_size": 3})):
                with self.subTest(method):
                    here = call(method, request)
                    there = call(method, request, "--server", server.address)
                    self.assertEqual((there.returncode, there.stdout, there.stderr),
                                     (here.returncode, here.stdout, here.stderr))
                    self.assertTrue(here.stdout or here.stderr)
            train = ("train", *make_run_flags())
            self.assertEqual(run(*train, "--server", server.address).stdout, run(*train).stdout)
            self.assertEqual(server.terminate(), 0)

    def test_errors_are_json_with_every_violation(self):
        ended = call("PlannerService/EstimateTraining", questions.FIVE_VIOLATIONS)
        self.assertEqual((ended.returncode, ended.stdout), (2, ""))
        status = json.loads(ended.stderr)
        self.assertEqual(status["code"], 3)
        details = {detail["@type"].rpartition(".")[2]: detail for detail in status["details"]}
        fields = [violation["field"] for violation in details["BadRequest"]["fieldViolations"]]
        self.assertEqual(sorted(fields), list(questions.FIVE_FIELDS))
        self.assertIn("ErrorInfo", details)

    def test_request_that_is_no_json(self):
        for text in ("{", '{"modle": {}}', "[]"):
            ended = run("call", "PlannerService/EstimateTraining", "--request=-", text=text)
            self.assertIn(ended.returncode, (1, 2), text)
            self.assertEqual(ended.stdout, "")
            self.assertTrue(ended.stderr)

    def test_no_such_method_and_no_such_file(self):
        for arguments in (("call", "NoService/NoMethod"),
                          ("call", "CatalogService/ListModels", "--request=" + os.path.join("no", "such", "file"))):
            ended = run(*arguments)
            self.assertEqual((ended.returncode, ended.stdout), (1, ""))

    def test_no_server(self):
        # A port that was free a moment ago.
        with RunningServer("--drain_delay=0s") as server:
            address = server.address
        ended = call("CatalogService/ListModels", {}, "--server", address, "--timeout", "5s")
        self.assertEqual((ended.returncode, ended.stdout), (2, ""))
        self.assertIn(json.loads(ended.stderr)["code"], (4, 14))


if __name__ == "__main__":
    harness.main(sys.modules["__main__"])
