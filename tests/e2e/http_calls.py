"""Every RPC over HTTP against the same RPC over gRPC; what the Connect protocol asks for besides."""

import base64
import json
import re
import socket
import urllib.parse

import grpc
from google.protobuf import json_format

from cases import ServerCase
from http_client import HttpClient, details
import questions
import wire

# connectrpc.com/docs/protocol, "Error Codes", read on 2026-11-30.
CONNECT_CODES = {
    grpc.StatusCode.INVALID_ARGUMENT: ("invalid_argument", 400),
    grpc.StatusCode.NOT_FOUND: ("not_found", 404),
    grpc.StatusCode.UNIMPLEMENTED: ("unimplemented", 501),
}

ONE_CHIP = {"accelerator": "tpu-v5e", "topology": "1x1"}
UNKNOWN_CHIP = {"accelerator": "tpu-v5q", "topology": "4x4"}

# A request that is answered and one that is refused, for every method.
PARITY = {
    "PlannerService/EstimateTraining": (questions.llama_training(questions.FSDP_CONTEXT), questions.FIVE_VIOLATIONS),
    "PlannerService/EstimateServing": (questions.SERVING_BATCH, {"model": {"preset": "no-such-model"}}),
    "PlannerService/ProposeSharding": (questions.SMALL_SEARCH, {}),
    "AnalysisService/DescribeModel": ({"model": {"preset": "llama-3-8b"}}, {"model": {"preset": "llama-3-9b"}}),
    "AnalysisService/AnalyzeOperation": (
        {"slice": ONE_CHIP, "matmul": {"m": "64", "k": "4096", "n": "8192"}},
        {"slice": UNKNOWN_CHIP, "matmul": {"m": "64", "k": "4096", "n": "8192"}}),
    "AnalysisService/AnalyzeCollective": (
        {"slice": {"accelerator": "tpu-v5e", "topology": "4x4"}, "kind": "COLLECTIVE_KIND_ALL_GATHER",
         "bytes": "1000000"}, {}),
    "AnalysisService/CompareMeasurement": (None, {}),
    "CatalogService/ListAccelerators": ({"pageSize": 3}, {"pageSize": -1}),
    "CatalogService/ListSlices": ({"pageSize": 3}, {"pageToken": "no token"}),
    "CatalogService/ListPrices": ({}, {"filter": "nonsense ="}),
    "CatalogService/ListModels": ({}, {"pageSize": -1}),
}

LIST_MODELS_PATH = "sliceplan.v1.CatalogService/ListModels"

MODULES = {"PlannerService": "planner", "AnalysisService": "analysis", "CatalogService": "catalog"}


def methods():
    """{"Service/Method": descriptor} of every service."""
    found = {}
    for service, name in MODULES.items():
        descriptor = wire.module(f"sliceplan.v1.{name}_service_pb2").DESCRIPTOR.services_by_name[service]
        found.update({f"{service}/{method.name}": method for method in descriptor.methods})
    return found


def message(descriptor):
    return wire.module(descriptor.file.name.replace("proto/", "").replace("/", ".")[:-len(".proto")] + "_pb2") \
        .__dict__[descriptor.name]


def comparable(reply):
    """Without what differs from call to call."""
    if reply.DESCRIPTOR.name == "ProposeShardingResponse":
        reply.search.ClearField("elapsed_seconds")
    return reply


class Http(ServerCase):
    """A server with both ports."""

    flags = ("--drain_delay=0s", "--http_port=0")

    def setUp(self):
        self.http = HttpClient(self.server.http_port)
        self.addCleanup(self.http.connection.close)

    def stub(self, method):
        service, _, name = method.partition("/")
        return getattr(getattr(self.client, MODULES[service]), name)


class Parity(Http):
    """The same request both ways."""

    def test_the_table_has_every_method(self):
        self.assertEqual(set(PARITY), set(methods()))

    def test_replies_are_equal(self):
        for method, descriptor in methods().items():
            question = PARITY[method][0]
            if question is None:
                continue
            with self.subTest(method):
                request = json_format.ParseDict(question, message(descriptor.input_type)())
                expected = comparable(self.stub(method)(request, timeout=wire.CALL_SECONDS))
                path = "sliceplan.v1." + method
                as_json = self.http.call(path, question)
                self.assertEqual((as_json.status, as_json.headers["content-type"]), (200, "application/json"),
                                 as_json.body[:500])
                reply_type = message(descriptor.output_type)
                self.assertEqual(comparable(json_format.Parse(as_json.body, reply_type())), expected)
                as_proto = self.http.call(path, request.SerializeToString(), content_type="application/proto")
                self.assertEqual((as_proto.status, as_proto.headers["content-type"]), (200, "application/proto"))
                self.assertEqual(comparable(reply_type.FromString(as_proto.body)), expected)
                query = urllib.parse.urlencode({"connect": "v1", "encoding": "json", "message": json.dumps(question)})
                if len(query) < 8000:  # a request line has 16 KiB
                    by_get = self.http.get(f"/{path}?{query}")
                    self.assertEqual(by_get.status, 200, by_get.body[:500])
                    self.assertEqual(comparable(json_format.Parse(by_get.body, reply_type())), expected)

    def test_errors_are_equal(self):
        for method, descriptor in methods().items():
            with self.subTest(method):
                question = PARITY[method][1]
                failure = wire.failure_of(self.stub(method),
                                          json_format.ParseDict(question, message(descriptor.input_type)()))
                reply = self.http.call("sliceplan.v1." + method, question)
                error = reply.json()
                self.assertEqual((error["code"], reply.status), CONNECT_CODES[failure.code])
                self.assertEqual(reply.headers["content-type"], "application/json")
                self.assertEqual(error["message"], failure.message)
                self.assertEqual(details(error),
                                 [(packed.TypeName(), packed.value) for packed in failure.status.details])
                for detail, packed in zip(error["details"], failure.status.details):
                    self.assertNotIn("=", detail["value"])
                    self.assertEqual(set(detail), {"type", "value", "debug"}, packed.TypeName())


class Protocol(Http):
    """What is not in the messages."""

    METHOD = LIST_MODELS_PATH

    def test_refusals(self):
        deep = '{"model":' * 100 + "1" + "}" * 100
        timeout = "Connect-Timeout-Ms"
        for name, status, code, body, headers in (
                ("no JSON", 400, "invalid_argument", "{", {}),
                ("nothing", 400, "invalid_argument", "", {}),
                ("an array", 400, "invalid_argument", "[]", {}),
                ("an unknown field", 400, "invalid_argument", '{"pageSise":1}', {}),
                ("a wrong type", 400, "invalid_argument", '{"pageSize":"many"}', {}),
                ("too deep", 400, "invalid_argument", deep, {}),
                ("a timeout in words", 400, "invalid_argument", "{}", {timeout: "soon"}),
                ("a negative timeout", 400, "invalid_argument", "{}", {timeout: "-1"}),
                ("a timeout of 11 digits", 400, "invalid_argument", "{}", {timeout: "1" * 11}),
                ("no time left", 504, "deadline_exceeded", "{}", {timeout: "0"}),
                ("another version", 400, "invalid_argument", "{}", {"Connect-Protocol-Version": "2"}),
                ("gzip", 501, "unimplemented", b"\x1f\x8b", {"Content-Encoding": "gzip"}),
                ("too large", 429, "resource_exhausted", " " * ((4 << 20) + 1), {})):
            with self.subTest(name), HttpClient(self.server.http_port) as client:
                reply = client.call(self.METHOD, body, headers)
                self.assertEqual((reply.status, reply.json()["code"]), (status, code), reply.body[:300])
        reply = self.http.call(self.METHOD, '{"pageSise":1}')
        self.assertIn("pageSize", reply.json()["message"])

    def test_accepted_spellings(self):
        for content_type in ("application/json", "application/json; charset=utf-8", "Application/JSON"):
            reply = self.http.call(self.METHOD, "{}", {"Connect-Protocol-Version": "1", "Connect-Timeout-Ms": "60000",
                                                       "Content-Encoding": "identity"}, content_type)
            self.assertEqual(reply.status, 200, content_type)
        message_base64 = base64.urlsafe_b64encode(b'{"pageSize":1}').decode().rstrip("=")
        reply = self.http.get(f"/{self.METHOD}?connect=v1&encoding=json&base64=1&message={message_base64}")
        self.assertEqual((reply.status, len(reply.json()["models"])), (200, 1))
        reply = self.http.get(f"/{self.METHOD}?encoding=json&message=%7B%7D&compression=gzip")
        self.assertEqual(reply.json()["code"], "unimplemented")
        for query in ("", "?encoding=json", "?encoding=xml&message=%7B%7D", "?connect=v2&encoding=json&message=%7B%7D",
                      "?encoding=json&message=%7"):
            self.assertEqual(self.http.get(f"/{self.METHOD}{query}").status, 400, query)

    def test_chunked_bodies(self):
        self.http.connection.request("POST", "/" + self.METHOD, iter([b'{"page', b'Size":1}']),
                                     {"Content-Type": "application/json"}, encode_chunked=True)
        with self.http.connection.getresponse() as response:
            self.assertEqual(response.status, 200)
            self.assertEqual(len(json.loads(response.read())["models"]), 1)

    def test_broken_chunks(self):
        head = (f"POST /{self.METHOD} HTTP/1.1\r\nHost: a\r\nX-Request-Id: broken-chunks\r\n"
                "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n").encode()
        for chunks in (b"zz\r\n{}\r\n0\r\n\r\n", b"\r\n{}\r\n0\r\n\r\n", b"-2\r\n{}\r\n0\r\n\r\n",
                       b"2\r\n{}\r\nnone\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", self.server.http_port), timeout=wire.CALL_SECONDS) as plain:
                plain.sendall(head + chunks)
                reply = b"".join(iter(lambda: plain.recv(4096), b""))
            self.assertEqual(reply.split(b" ")[1], b"400", (chunks, reply))
            self.assertIn(b'"code":"invalid_argument"', reply, chunks)
        record = self.server.wait_for_log(lambda line: line.get("request_id") == "broken-chunks")
        self.assertEqual(record["code"], "INVALID_ARGUMENT")

    def test_wrong_paths_methods_types(self):
        for method, path, status in (("GET", "/", 404), ("GET", "/nothing", 404), ("POST", "/metrics", 405),
                                     ("POST", "/CatalogService/ListModels", 404),
                                     ("POST", "/sliceplan.v1.CatalogService/NoMethod", 404),
                                     ("PUT", "/" + self.METHOD, 405), ("DELETE", "/readyz", 405),
                                     ("OPTIONS", "/" + self.METHOD, 405), ("GET", "/../../etc/passwd", 404)):
            with self.subTest(path), HttpClient(self.server.http_port) as client:
                self.assertEqual(client.request(method, path).status, status, method)
        for content_type in ("text/plain", "application/grpc", "application/json; charset=latin1", ""):
            with HttpClient(self.server.http_port) as client:
                reply = client.call(self.METHOD, "{}", content_type=content_type)
                self.assertEqual((reply.status, reply.headers["accept-post"]),
                                 (415, "application/json, application/proto"), content_type)

    def test_request_ids_and_log_lines(self):
        trace = "0af7651916cd43dd8448eb211c80319c"
        reply = self.http.call(self.METHOD, "{}", {
            "X-Request-Id": "job-42", "Traceparent": f"00-{trace}-b7ad6b7169203331-01", "Connect-Timeout-Ms": "5000"})
        self.assertEqual(reply.headers["x-request-id"], "job-42")
        record = self.server.wait_for_log(lambda line: line.get("request_id") == "job-42")
        self.assertEqual((record["message"], record["method"], record["code"], record["severity"]),
                         ("call", self.METHOD, "OK", "INFO"))
        self.assertEqual((record["trace_id"], record["deadline_s"]), (trace, 5))
        self.assertGreaterEqual(record["latency_s"], 0)
        self.assertTrue(record["peer"].startswith("ipv4:127.0.0.1:"))

        reply = self.http.call(self.METHOD, '{"pageSize":-1}', {"X-Request-Id": "no good\u00e4"})
        self.assertRegex(reply.headers["x-request-id"], "^[0-9a-f]{16}$")
        record = self.server.wait_for_log(lambda line: line.get("request_id") == reply.headers["x-request-id"])
        self.assertEqual((record["code"], record["error"]), ("INVALID_ARGUMENT", reply.json()["message"]))
        # The same fields as a call over gRPC.
        with wire.Client(self.server.address) as client:
            request = wire.module("sliceplan.v1.catalog_pb2").ListModelsRequest(page_size=-1)
            failure_metadata = (("x-request-id", "over-grpc"),)
            with self.assertRaises(grpc.RpcError):
                client.catalog.ListModels(request, timeout=wire.CALL_SECONDS, metadata=failure_metadata)
        over_grpc = self.server.wait_for_log(lambda line: line.get("request_id") == "over-grpc")
        self.assertEqual(set(over_grpc) - {"deadline_s"}, set(record))

    def test_no_cross_origin_by_default(self):
        reply = self.http.call(self.METHOD, "{}", {"Origin": "https://example.org"})
        self.assertEqual(reply.status, 200)
        self.assertFalse([name for name in reply.headers if name.startswith("access-control-")])

    def test_pages(self):
        for path in ("/healthz", "/livez", "/readyz"):
            reply = self.http.get(path)
            self.assertEqual((reply.status, reply.body), (200, b"ok\n"), path)
            self.assertEqual(self.http.request("HEAD", path).body, b"")
        reply = self.http.get("/metrics")
        self.assertRegex(reply.headers["content-type"], re.escape("text/plain; version=0.0.4"))


class CrossOrigin(Http):
    """With an allow-list."""

    flags = (*Http.flags, "--http_cors_origins=https://a.example,https://b.example")

    def test_allow_list(self):
        path = "/" + LIST_MODELS_PATH
        preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        for origin, allowed in (("https://a.example", True), ("https://b.example", True), ("https://c.example", False),
                                ("https://a.example.org", False), ("http://a.example", False), ("null", False)):
            with self.subTest(origin):
                replies = (self.http.request("OPTIONS", path, headers={"Origin": origin, **preflight}),
                           self.http.call(LIST_MODELS_PATH, "{}", {"Origin": origin}))
                self.assertEqual([reply.status for reply in replies], [204, 200])
                for reply in replies:
                    self.assertEqual(reply.headers.get("access-control-allow-origin"), origin if allowed else None)
                    self.assertEqual(reply.headers["vary"], "origin")
                allowed_headers = replies[0].headers.get("access-control-allow-headers", "")
                self.assertEqual("connect-timeout-ms" in allowed_headers, allowed)
