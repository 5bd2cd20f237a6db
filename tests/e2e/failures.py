"""Errors as callers see them: codes, details, limits, deadlines."""

import json
import socket

import grpc

from cases import ServerCase, training_request
import questions
import wire

# Trailers of a gRPC call share 8 KiB; half of it is left to proxies and tracing.
MAX_DETAILS_BYTES = 4096
ERROR_DOMAIN = "sliceplan.v1"
# Written down in the config of google-t5/t5-large.
T5_CONFIG = {"architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "d_model": 1024, "d_ff": 4096,
             "d_kv": 64, "num_heads": 16, "num_layers": 24, "num_decoder_layers": 24, "vocab_size": 32128}


class Errors(ServerCase):
    """One call each."""

    def check(self, failure, code, *details):
        self.assertEqual(failure.code, code, failure.message)
        self.assertEqual(set(failure.details), set(details))
        self.assertLessEqual(len(failure.details_bytes), MAX_DETAILS_BYTES)
        self.assertEqual((failure.status.code, failure.status.message), (code.value[0], failure.message))
        info = failure.details["ErrorInfo"]
        self.assertEqual(info.domain, ERROR_DOMAIN)
        self.assertRegex(info.reason, r"^[A-Z][A-Z0-9_]{1,62}$")

    def training_failure(self, question):
        return wire.failure_of(self.client.planner.EstimateTraining, training_request(question))

    def test_five_violations_at_once(self):
        failure = self.training_failure(questions.FIVE_VIOLATIONS)
        self.check(failure, grpc.StatusCode.INVALID_ARGUMENT, "BadRequest", "ErrorInfo")
        self.assertEqual(sorted(failure.fields()), list(questions.FIVE_FIELDS))
        for violation in failure.details["BadRequest"].field_violations:
            self.assertRegex(violation.description, r"\d")

    def test_text_that_is_no_utf8(self):
        # Protobuf says so in words of its own, which must not reach the log: it holds JSON objects only.
        request = training_request({"model": {"preset": "no-text"}}).SerializeToString()
        call = self.client.channel.unary_unary("/sliceplan.v1.PlannerService/EstimateTraining")
        failure = wire.failure_of(call, request.replace(b"no-text", b"no\xfftext"))
        self.assertEqual(failure.code, grpc.StatusCode.INVALID_ARGUMENT)
        self.server.log_records()

    def test_violations_without_end_still_arrive(self):
        layer = {"attention": {"groupedQuery": {"queryHeadCount": -1, "kvHeadCount": 3, "headDim": -5}},
                 "feedForward": {"dense": {"ffnDim": -1}}}
        question = {"model": {"architecture": {"hiddenDim": 64, "vocabSize": 100,
                                               "layerGroups": [{"repeatCount": -1, "layers": [layer]}] * 50}},
                    "slice": {"accelerator": "tpu-v5p", "topology": "4x4x4"}}
        failure = self.training_failure(question)
        self.check(failure, grpc.StatusCode.INVALID_ARGUMENT, "BadRequest", "ErrorInfo")
        self.assertIn("model.architecture.layer_groups[0].repeat_count", failure.fields())
        self.assertGreaterEqual(int(failure.details["ErrorInfo"].metadata["violation_count"]), 50)

    def test_unknown_accelerator(self):
        question = {"model": {"preset": "llama-3-70b"}, "slice": {"accelerator": "tpu-v5q", "topology": "4x4x4"}}
        failure = self.training_failure(question)
        self.check(failure, grpc.StatusCode.NOT_FOUND, "ResourceInfo", "ErrorInfo")
        self.assertEqual(failure.details["ResourceInfo"].resource_name, "tpu-v5q")
        self.assertIn("tpu-v5p", failure.message)
        self.assertIn("tpu-v5e", failure.message)

    def test_unknown_model(self):
        question = {"model": {"preset": "lama-3-70b"}, "slice": {"accelerator": "tpu-v5p", "topology": "4x4x4"}}
        failure = self.training_failure(question)
        self.check(failure, grpc.StatusCode.NOT_FOUND, "ResourceInfo", "ErrorInfo")
        self.assertIn("llama-3-70b", failure.message)

    def test_model_with_an_encoder(self):
        messages = wire.module("sliceplan.v1.model_description_pb2")
        model = wire.module("sliceplan.v1.model_pb2").ModelSpec(hugging_face_config=json.dumps(T5_CONFIG))
        failure = wire.failure_of(self.client.analysis.DescribeModel, messages.DescribeModelRequest(model=model))
        self.check(failure, grpc.StatusCode.INVALID_ARGUMENT, "BadRequest", "ErrorInfo")
        self.assertEqual(failure.details["ErrorInfo"].reason, "MODEL_FAMILY_UNSUPPORTED")
        self.assertEqual(failure.fields(), ["model.hugging_face_config"])

    def test_degrees_that_do_not_divide(self):
        # 4,096 chips, 64 heads, sequences of 4,096 tokens: nothing of it has a factor 3.
        for ici, field, number in (({"fsdp": 512, "context": 3}, "parallelism.ici", "4,?096"),
                                   ({"fsdp": 512, "context": 3}, "parallelism.ici.context", "4,?096"),
                                   ({"fsdp": 1365, "tensor": 3}, "parallelism.ici.tensor", "64")):
            with self.subTest(ici, field=field):
                failure = self.training_failure(questions.llama_training(ici))
                self.check(failure, grpc.StatusCode.INVALID_ARGUMENT, "BadRequest", "ErrorInfo")
                said = " ".join(violation.description for violation in failure.details["BadRequest"].field_violations
                                if violation.field == field)
                self.assertRegex(said, rf"\b{number}\b", failure.message)

    def test_rpcs_of_later_releases_say_so(self):
        failure = wire.failure_of(self.client.analysis.CompareMeasurement,
                                  wire.module("sliceplan.v1.measurement_pb2").CompareMeasurementRequest())
        self.check(failure, grpc.StatusCode.UNIMPLEMENTED, "ErrorInfo")
        self.assertRegex(failure.message, r"^[A-Z].*\.$")

    def test_message_too_large(self):
        model = wire.module("sliceplan.v1.model_pb2").ModelSpec(hugging_face_config=" " * (5 << 20))
        messages = wire.module("sliceplan.v1.model_description_pb2")
        failure = wire.failure_of(self.client.analysis.DescribeModel, messages.DescribeModelRequest(model=model))
        self.assertEqual(failure.code, grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertEqual(self.client.health_status(), "SERVING")

    def test_bytes_that_are_no_request(self):
        call = self.client.channel.unary_unary("/sliceplan.v1.PlannerService/EstimateTraining")
        with self.assertRaises(grpc.RpcError):
            call(b"\xff\xff\xff\xff", timeout=wire.CALL_SECONDS)
        self.assertEqual(self.client.health_status(), "SERVING")

    def test_bytes_that_are_no_http2(self):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=wire.CALL_SECONDS) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            while connection.recv(4096):
                pass
        self.assertEqual(self.client.health_status(), "SERVING")

    def test_not_fitting_is_an_outcome(self):
        question = {"model": {"preset": "llama-3-70b"}, "slice": {"accelerator": "tpu-v5e", "topology": "2x2"},
                    "workload": {"sequenceLength": 4096, "globalBatchSize": "4"}}
        estimate = self.training(question)
        outcomes = wire.module("sliceplan.v1.estimate_pb2").Outcome
        self.assertEqual(estimate.outcome, outcomes.OUTCOME_OUT_OF_MEMORY)
        self.assertGreater(estimate.shortfall.missing, 0)
        # AdamW in fp32 keeps 12 bytes per parameter at least; all of it over four chips does not fit 16 GB.
        self.assertGreater(estimate.memory.used_bytes, estimate.memory.capacity_bytes)

    def test_deadline(self):
        request = training_request(questions.LONG_SEARCH)
        self.assertEqual(self.client.health_status(), "SERVING")  # connected
        for _ in range(5):  # on a busy machine time may run out before a request arrives
            with self.assertRaises(grpc.RpcError) as caught:
                self.client.planner.EstimateTraining(request, timeout=0.005)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        # The caller's own clock ran out as well, and its cancellation may come first.
        self.server.wait_for_log(lambda line: line.get("deadline_s", 1e9) < 0.1 and
                                 line["method"].endswith("/EstimateTraining") and
                                 line["code"] in ("DEADLINE_EXCEEDED", "CANCELLED"))
        self.assertEqual(self.client.health_status(), "SERVING")
        self.assertEqual(self.training(questions.llama_training(questions.FSDP_CONTEXT)).chip_count, 8192)

    def test_request_id(self):
        call = self.client.planner.EstimateTraining.with_call(
            training_request(questions.llama_training(questions.FSDP_CONTEXT)), timeout=wire.CALL_SECONDS,
            metadata=(("x-request-id", "e2e-0001"),))[1]
        self.assertEqual(dict(call.trailing_metadata())["x-request-id"], "e2e-0001")
        record = self.server.wait_for_log(lambda line: line.get("request_id") == "e2e-0001")
        self.assertEqual((record["severity"], record["code"], record["method"]),
                         ("INFO", "OK", "sliceplan.v1.PlannerService/EstimateTraining"))
