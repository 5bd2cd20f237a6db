"""From start to end of the process: start-up, catalog reload, drain, logs."""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

import grpc

from cases import training_request
from harness import Settings
import questions
from running_server import RunningServer
import wire

# The aims are 0.2 s and 100 MB; a busy machine gets more time.
MAX_START_SECONDS = 2.0
MAX_RESIDENT_BYTES = 100 * 10**6

OVERLAY = """# proto-file: proto/sliceplan/catalog/v1/catalog.proto
# proto-message: sliceplan.catalog.v1.Prices
prices {{
  provider: "gcp"
  accelerator: "tpu-v5p"
  region: "e2e-region"
  price_model: PRICE_MODEL_ON_DEMAND
  usd_per_chip_hour: {price}
  as_of: "2026-11-01"
  source: "a contract of this test"
}}
"""


class Start(unittest.TestCase):
    """What an orchestrator sees first."""

    def test_time_to_serving_and_memory(self):
        best, resident = float("inf"), 0
        for _ in range(5):
            with RunningServer() as server, wire.Client(server.address) as client:
                self.assertEqual(client.health_status(), "SERVING")
                best = min(best, server.port_seconds)
                resident = max(resident, server.resident_bytes())
        print(f"start to serving {best * 1e3:.0f} ms (best of 5), resident {resident / 1e6:.0f} MB", flush=True)
        if not Settings.sanitized:
            self.assertLess(best, MAX_START_SECONDS)
            self.assertLess(resident, MAX_RESIDENT_BYTES)

    def test_second_server_on_the_same_port_fails(self):
        with RunningServer() as server:
            second = subprocess.run([Settings.server, f"--port={server.port}"], capture_output=True, text=True,
                                    timeout=60, check=False)
            self.assertEqual(second.returncode, 1)
            self.assertEqual(second.stdout, "")
            self.assertIn("cannot listen", second.stderr)
            for line in second.stderr.splitlines():  # also what libraries say
                json.loads(line)
            with wire.Client(server.address) as client:
                self.assertEqual(client.health_status(), "SERVING")

    def test_wrong_flags_fail(self):
        for flag in ("--port=70000", "--address=0.0.0.0", "--log_level=loud", "--no_such_flag"):
            ended = subprocess.run([Settings.server, "--port=0", flag], capture_output=True, text=True, timeout=60,
                                   check=False)
            self.assertEqual((ended.returncode, ended.stdout), (1, ""), flag)
            self.assertTrue(ended.stderr, flag)


class Files(unittest.TestCase):
    """File descriptors."""

    def test_without_free_ones_it_drains_and_ends(self):
        if Settings.sanitized:
            self.skipTest("UBSan opens a pipe to see whether an object may be read, and ends the program if it cannot")
        # gRPC accepts nobody after that, so a supervisor must start it again.
        with RunningServer("--drain_delay=5s", "--grace=1s") as server, wire.Client(server.address) as client:
            self.assertEqual(client.health_status(), "SERVING")
            limit = len(os.listdir(f"/proc/{server.process.pid}/fd")) + 5
            resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
            sockets = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(20)]
            self.addCleanup(lambda: [one.close() for one in sockets])
            server.wait_for_log(lambda line: "accepted any more" in line["message"])
            request = training_request(questions.llama_training(questions.FSDP_CONTEXT))
            reply = client.planner.EstimateTraining(request, timeout=wire.CALL_SECONDS)
            self.assertEqual(reply.estimate.chip_count, 8192)
            self.assertEqual(server.wait(), 0)
            server.log_records()

    def test_it_may_have_as_many_as_the_machine_allows(self):
        with RunningServer() as server:
            soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
            self.assertEqual(soft, hard)


class Reload(unittest.TestCase):
    """SIGHUP with an operator's price."""

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="sliceplan-catalog-")
        self.addCleanup(shutil.rmtree, self.directory)

    def write_price(self, price):
        # As a mounted ConfigMap changes: whole files, replaced at once.
        path = os.path.join(self.directory, "ours.textproto")
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(OVERLAY.format(price=price))
        os.replace(path + ".new", path)

    def prices(self, client):
        request = wire.module("sliceplan.v1.catalog_pb2").ListPricesRequest(filter='region="e2e-region"')
        reply = client.catalog.ListPrices(request, timeout=wire.CALL_SECONDS)
        return [price.usd_per_chip_hour for price in reply.prices], reply.catalog_version

    def test_good_and_bad_overlay(self):
        with RunningServer(f"--catalog_dir={self.directory}", "--drain_delay=0s") as server, \
                wire.Client(server.address) as client:
            before, first_version = self.prices(client)
            self.assertEqual(before, [])

            self.write_price("3.25")
            server.signal(signal.SIGHUP)
            record = server.wait_for_log(lambda line: line["message"] == "catalog read again")
            after, second_version = self.prices(client)
            self.assertEqual(after, [3.25])
            self.assertNotEqual(second_version, first_version)
            self.assertEqual(record["catalog_version"], second_version)

            question = questions.llama_training(questions.FSDP_CONTEXT_TENSOR, pricing={"region": "e2e-region"})
            reply = client.planner.EstimateTraining(training_request(question), timeout=wire.CALL_SECONDS)
            self.assertEqual(reply.catalog_version, second_version)
            self.assertAlmostEqual(reply.estimate.cost.usd_per_hour, 3.25 * 8192)

            self.write_price("-1")
            server.signal(signal.SIGHUP)
            record = server.wait_for_log(lambda line: line["severity"] == "ERROR")
            for named in ("ours.textproto", "usd_per_chip_hour"):
                self.assertIn(named, record["cause"])
            self.assertEqual(self.prices(client), (after, second_version))
            self.assertEqual(server.terminate(), 0)

    def test_bad_overlay_at_start(self):
        self.write_price("-1")
        ended = subprocess.run([Settings.server, "--port=0", f"--catalog_dir={self.directory}"], capture_output=True,
                               text=True, timeout=60, check=False)
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertIn("usd_per_chip_hour", ended.stderr)


class Drain(unittest.TestCase):
    """SIGTERM."""

    def watch(self, client):
        """Statuses of health.Watch: names so far, and events of SERVING and NOT_SERVING. The watch stays open."""
        health = wire.module("health.v1.health_pb2")
        names, serving, not_serving = [], threading.Event(), threading.Event()

        def read():
            stream = client.health.Watch(health.HealthCheckRequest(), timeout=wire.CALL_SECONDS)
            try:
                for reply in stream:
                    names.append(health.HealthCheckResponse.ServingStatus.Name(reply.status))
                    (serving if names[-1] == "SERVING" else not_serving).set()
            except grpc.RpcError as error:
                names.append(error.code().name)

        threading.Thread(target=read, daemon=True).start()
        return names, serving, not_serving

    def test_calls_are_answered_while_draining(self):
        # A grace that the open watch must not use up.
        with RunningServer("--drain_delay=3s", "--grace=1h") as server, wire.Client(server.address) as client:
            names, serving, not_serving = self.watch(client)
            self.assertTrue(serving.wait(30))
            server.signal(signal.SIGTERM)
            self.assertTrue(not_serving.wait(30))
            request = training_request(questions.llama_training(questions.FSDP_CONTEXT))
            reply = client.planner.EstimateTraining(request, timeout=wire.CALL_SECONDS)
            self.assertEqual(reply.estimate.chip_count, 8192)
            self.assertEqual(server.wait(), 0)
            self.assertEqual(names[:2], ["SERVING", "NOT_SERVING"])
            messages = [record["message"] for record in server.log_records()]
            self.assertLess(messages.index("draining"), messages.index("drained"))
            with wire.Client(server.address) as late, self.assertRaises(grpc.RpcError) as caught:
                late.planner.EstimateTraining(request, timeout=wire.CALL_SECONDS)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)

    def test_running_calls_end_well(self):
        with RunningServer("--drain_delay=0s", "--grace=60s", "--worker_threads=1", "--target_wait=60s") as server, \
                wire.Client(server.address) as client:
            request = training_request(questions.LONG_SEARCH)
            calls = [client.planner.EstimateTraining.future(request, timeout=wire.CALL_SECONDS, wait_for_ready=True)
                     for _ in range(4)]
            # The first answer is there, so the others, sent before on the same connection, have arrived.
            calls[0].result(wire.CALL_SECONDS)
            self.assertEqual(server.terminate(), 0)
            replies = [call.result(wire.CALL_SECONDS) for call in calls]
            self.assertEqual(len({reply.SerializeToString(deterministic=True) for reply in replies}), 1)
            self.assertGreater(replies[0].estimate.evaluated_plan_count, 100)
