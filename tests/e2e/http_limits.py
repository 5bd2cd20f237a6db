"""The HTTP port at its limits: metrics, overload, deadlines, slow clients, the end."""

import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import grpc

from harness import REPOSITORY, Settings
from http_calls import Http, LIST_MODELS_PATH
from http_client import HttpClient
import questions
from running_server import RunningServer
import wire

LIST_MODELS = (("grpc_method", "ListModels"), ("grpc_service", "sliceplan.v1.CatalogService"), ("grpc_type", "unary"))


def of(name, *labels):
    return name, frozenset(labels)


class Metrics(Http):
    """/metrics after known calls."""

    def test_promtool_has_nothing_to_say(self):
        promtool = os.path.join(REPOSITORY, "scripts", "promtool.sh")
        self.http.call(LIST_MODELS_PATH, "{}")
        checked = subprocess.run([promtool, "check", "metrics"], input=self.http.get("/metrics").body,
                                 capture_output=True, timeout=300, check=False)
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, b""))

    def test_calls_are_counted_whatever_carried_them(self):
        handled = {code: of("grpc_server_handled_total", *LIST_MODELS, ("grpc_code", code))
                   for code in ("OK", "InvalidArgument", "Internal")}
        started = of("grpc_server_started_total", *LIST_MODELS)
        count = of("grpc_server_handling_seconds_count", *LIST_MODELS)
        before = self.http.samples()
        request = wire.module("sliceplan.v1.catalog_pb2").ListModelsRequest()
        for _ in range(3):
            self.client.catalog.ListModels(request, timeout=wire.CALL_SECONDS)
        for _ in range(4):
            self.assertEqual(self.http.call(LIST_MODELS_PATH, "{}").status, 200)
        for _ in range(2):
            self.assertEqual(self.http.call(LIST_MODELS_PATH, "{").status, 400)
        after = self.http.samples()
        self.assertEqual({code: after[key] - before[key] for code, key in handled.items()},
                         {"OK": 7, "InvalidArgument": 2, "Internal": 0})
        self.assertEqual((after[started] - before[started], after[count] - before[count]), (9, 9))
        self.assertEqual(after[of("sliceplan_calls_in_flight", *LIST_MODELS)], 0)

    def test_every_method_has_its_series_from_the_start(self):
        with RunningServer(*self.flags) as server, HttpClient(server.http_port) as client:
            samples = client.samples()
            for service in wire.SERVICES:
                names = {dict(labels).get("grpc_method") for name, labels in samples
                         if name == "grpc_server_handled_total" and dict(labels)["grpc_service"] == service}
                module = wire.module(f"sliceplan.v1.{service.rpartition('.')[2][:-len('Service')].lower()}_service_pb2")
                methods = module.DESCRIPTOR.services_by_name[service.rpartition(".")[2]].methods
                self.assertEqual(names, {method.name for method in methods})
            for name in ("process_cpu_seconds_total", "process_open_fds", "process_resident_memory_bytes",
                         "process_start_time_seconds", "sliceplan_queue_length", "sliceplan_queue_limit",
                         "sliceplan_engine_errors_total", "sliceplan_catalog_age_seconds"):
                self.assertIn(of(name), samples)
            self.assertLess(abs(samples[of("process_start_time_seconds")] - time.time()), 60)
            self.assertLess(abs(samples[of("process_resident_memory_bytes")] - server.resident_bytes()), 50e6)

    def test_no_caller_makes_series(self):
        names = len(self.http.samples())
        for i in range(20):
            call = self.client.channel.unary_unary(f"/sliceplan.v1.PlannerService/NoMethod{i}")
            with self.assertRaises(grpc.RpcError):
                call(b"", timeout=wire.CALL_SECONDS)
            self.http.get(f"/nothing{i}")
        self.assertEqual(len(self.http.samples()), names)

    def test_searches(self):
        names = ("sliceplan_searches_total", "sliceplan_searches_truncated_total",
                 "sliceplan_candidates_evaluated_total", "sliceplan_queue_wait_seconds_count")
        before = self.http.samples()
        reply = self.http.call("sliceplan.v1.PlannerService/ProposeSharding", questions.SMALL_SEARCH)
        self.assertEqual(reply.status, 200)
        after = self.http.samples()
        change = [after[of(name)] - before[of(name)] for name in names]
        self.assertEqual(change, [1, 0, int(reply.json()["search"]["evaluatedCount"]), 1])
        question = {**questions.LONG_PROPOSALS, "searchTimeLimit": "0.05s"}
        reply = self.http.call("sliceplan.v1.PlannerService/ProposeSharding", question)
        self.assertEqual((reply.status, reply.json()["search"]["exhaustive"]), (200, False), reply.body[:300])
        self.assertEqual(self.http.samples()[of(names[1])] - after[of(names[1])], 1)

    def test_catalog(self):
        version = self.client.catalog.ListModels(wire.module("sliceplan.v1.catalog_pb2").ListModelsRequest(),
                                                 timeout=wire.CALL_SECONDS).catalog_version
        self.assertEqual(self.http.samples()[of("sliceplan_catalog_info", ("version", version))], 1)
        self.server.signal(signal.SIGHUP)
        self.server.wait_for_log(lambda line: line["message"] == "catalog read again")
        samples = self.http.samples()
        self.assertEqual(samples[of("sliceplan_catalog_reloads_total", ("result", "ok"))], 1)
        self.assertEqual(samples[of("sliceplan_catalog_reloads_total", ("result", "failed"))], 0)


class SlowClients(Http):
    """Connections that say nothing, or little."""

    THREADS = 128  # server/rpc/http/http_server.h

    def connect(self, first_bytes=b""):
        connection = socket.create_connection(("127.0.0.1", self.server.http_port), timeout=wire.CALL_SECONDS)
        self.addCleanup(connection.close)
        if first_bytes:
            connection.sendall(first_bytes)
        return connection

    def test_half_a_request_holds_no_other_call(self):
        for first_bytes in (b"", b"POST /", b"GET /livez HTTP/1.1\r\nHost: a\r\n",
                            f"POST /{LIST_MODELS_PATH} HTTP/1.1\r\nContent-Type: application/json\r\n"
                            "Content-Length: 100\r\n\r\n{".encode()):
            self.connect(first_bytes)
        self.assertEqual(self.http.call(LIST_MODELS_PATH, "{}").status, 200)

    def test_more_silent_connections_than_threads(self):
        silent = [self.connect(b"POST /") for _ in range(3 * self.THREADS)]
        slowest = 0.0
        for _ in range(5):
            start = time.monotonic()
            with HttpClient(self.server.http_port) as client:
                self.assertEqual(client.get("/livez").status, 200)
            slowest = max(slowest, time.monotonic() - start)
        print(f"{len(silent)} silent connections: slowest /livez {slowest * 1e3:.0f} ms", flush=True)
        self.assertGreater(self.http.samples()[of("sliceplan_http_connections_cut_total")], 0)
        # Some have been closed by the server, the others are no trouble.
        self.assertEqual(self.http.call(LIST_MODELS_PATH, "{}").status, 200)

    def test_a_caller_that_leaves_stops_its_search(self):
        body = b'{"model":{"preset":"deepseek-v3"},"training":{"globalBatchTokens":"16777216"}}'
        connection = self.connect(b"POST /sliceplan.v1.PlannerService/ProposeSharding HTTP/1.1\r\nHost: a\r\n"
                                  b"X-Request-Id: leaves\r\nContent-Type: application/json\r\n"
                                  b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        in_flight = of("sliceplan_calls_in_flight", ("grpc_method", "ProposeSharding"),
                       ("grpc_service", "sliceplan.v1.PlannerService"), ("grpc_type", "unary"))
        while self.http.samples()[in_flight] == 0:
            pass
        connection.close()
        record = self.server.wait_for_log(lambda line: line.get("request_id") == "leaves")
        self.assertEqual(record["code"], "CANCELLED")


class Overload(unittest.TestCase):
    """One worker, hardly a queue."""

    def test_refused_callers_are_told_when_to_come_back(self):
        with RunningServer("--http_port=0", "--drain_delay=0s", "--worker_threads=1", "--target_wait=1us") as server:
            replies = []

            def search():
                with HttpClient(server.http_port) as client:
                    replies.append(client.call("sliceplan.v1.PlannerService/ProposeSharding",
                                               {**questions.LONG_PROPOSALS, "searchTimeLimit": "0.5s"},
                                               {"Connect-Timeout-Ms": "3000"}))

            threads = [threading.Thread(target=search) for _ in range(40)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            refused = [reply for reply in replies if reply.status == 429]
            self.assertTrue(refused, [reply.status for reply in replies])
            for reply in refused:
                self.assertEqual(reply.json()["code"], "resource_exhausted")
                pushback = int(reply.headers["grpc-retry-pushback-ms"])
                self.assertEqual(int(reply.headers["retry-after"]), -(-pushback // 1000))
                self.assertEqual([detail["type"] for detail in reply.json()["details"]],
                                 ["google.rpc.RetryInfo", "google.rpc.ErrorInfo"])
            # The others were answered in time, or their time passed in the queue.
            self.assertLessEqual({reply.status for reply in replies}, {200, 429, 504})
            with HttpClient(server.http_port) as client:
                samples = client.samples()
            self.assertEqual(samples[of("sliceplan_shed_total", ("reason", "queue_full"))], len(refused))
            self.assertEqual(server.terminate(), 0)


class OffLoopback(unittest.TestCase):
    """gRPC with TLS on every address, HTTP in plaintext beside it."""

    def test_calls_need_permission_and_pages_do_not(self):
        with tempfile.TemporaryDirectory() as directory:
            certificate, key = os.path.join(directory, "cert.pem"), os.path.join(directory, "key.pem")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                            "-days", "1", "-subj", "/CN=server", "-addext", "subjectAltName=DNS:localhost", "-keyout",
                            key, "-out", certificate], check=True, capture_output=True, timeout=60)
            tls = (f"--tls_cert={certificate}", f"--tls_key={key}", "--drain_delay=0s", "--http_port=0")
            for flags, status in ((("--address=0.0.0.0",), 403),
                                  (("--address=0.0.0.0", "--insecure_any_address"), 200),
                                  ((), 200)):
                with self.subTest(flags), RunningServer(*tls, *flags) as server:
                    with HttpClient(server.http_port) as client:
                        self.assertEqual(client.call(LIST_MODELS_PATH, "{}").status, status)
                        get = client.get(f"/{LIST_MODELS_PATH}?connect=v1&encoding=json&message=%7B%7D")
                        self.assertEqual(get.status, status)
                        for page in ("/metrics", "/livez", "/readyz"):
                            self.assertEqual(client.get(page).status, 200, page)
                    self.assertEqual(server.terminate(), 0)


class End(unittest.TestCase):
    """SIGTERM with callers over HTTP."""

    def test_not_ready_while_draining_and_no_call_fails(self):
        with RunningServer("--http_port=0", "--drain_delay=3s", "--grace=60s") as server:
            client = HttpClient(server.http_port)
            self.assertEqual(client.get("/readyz").headers["connection"], "keep-alive")
            server.signal(signal.SIGTERM)
            server.wait_for_log(lambda line: line["message"] == "draining")
            while client.get("/readyz").status == 200:
                pass
            self.assertEqual(client.get("/livez").status, 200)
            reply = client.call(LIST_MODELS_PATH, "{}")
            self.assertEqual((reply.status, reply.headers["connection"]), (200, "close"))
            # Calls that begin in the drain and run beyond the end of the listener.
            replies = []

            def search():
                with HttpClient(server.http_port) as caller:
                    replies.append(caller.call("sliceplan.v1.PlannerService/ProposeSharding",
                                               {**questions.LONG_PROPOSALS, "searchTimeLimit": "3s"}).status)

            threads = [threading.Thread(target=search) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(replies, [200, 200])
            self.assertEqual(server.wait(), 0)
            with self.assertRaises(OSError):
                client.get("/livez")

    def test_silent_connections_do_not_hold_it_up(self):
        grace = 60
        with RunningServer("--http_port=0", "--drain_delay=0s", f"--grace={grace}s") as server:
            silent = [socket.create_connection(("127.0.0.1", server.http_port), timeout=wire.CALL_SECONDS)
                      for _ in range(20)]
            for number, connection in enumerate(silent):
                connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\n"[:number])
            # An idle one has been answered before.
            with HttpClient(server.http_port) as idle:
                self.assertEqual(idle.get("/livez").status, 200)
                start = time.monotonic()
                self.assertEqual(server.terminate(), 0)
                # A request that has begun has 10 s to arrive; without that limit it would take the grace.
                self.assertLess(time.monotonic() - start, grace / 2)
            for connection in silent:
                connection.close()

    def test_second_server_on_the_same_http_port_fails(self):
        with RunningServer("--http_port=0", "--drain_delay=0s") as server:
            second = subprocess.run([Settings.server, "--port=0", f"--http_port={server.http_port}"],
                                    capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((second.returncode, second.stdout), (1, ""))
            self.assertIn("cannot listen", second.stderr)
