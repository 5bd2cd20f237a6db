"""Serving estimates: from the request to the reply, over a fixed batch, a rate and two pools."""

import math

from google.protobuf import json_format
import grpc

from cases import ServerCase
import questions
import wire


def serving_request(question):
    """EstimateServingRequest of a question in JSON."""
    return json_format.ParseDict(question, wire.module("sliceplan.v1.serving_pb2").EstimateServingRequest())


def doubles(message):
    """Every floating-point number of a message."""
    for field, value in message.ListFields():
        values = value if field.label == field.LABEL_REPEATED else [value]
        for item in values:
            if field.cpp_type == field.CPPTYPE_MESSAGE:
                yield from doubles(item)
            elif field.cpp_type == field.CPPTYPE_DOUBLE:
                yield item


class Serving(ServerCase):
    """One call each."""

    def ask(self, question):
        reply = self.client.planner.EstimateServing(serving_request(question), timeout=wire.CALL_SECONDS)
        self.assertTrue(all(math.isfinite(number) for number in doubles(reply)))
        return reply.estimate

    def failure(self, question):
        return wire.failure_of(self.client.planner.EstimateServing, serving_request(question))

    def outcome(self, name):
        return wire.module("sliceplan.v1.estimate_pb2").Outcome.Value(f"OUTCOME_{name}")

    def test_a_fixed_batch(self):
        # Chapter 7 of "How To Scale Your Model": LLaMA 3 70B in int8 on a v5e 4x4, 19 ms a step at batch 32 and 8k.
        estimate = self.ask(questions.SERVING_BATCH)
        self.assertEqual(estimate.outcome, self.outcome("FEASIBLE"))
        self.assertEqual((estimate.batch_size, estimate.chip_count, len(estimate.pools)), (32, 16, 1))
        self.assertGreater(estimate.max_batch_size, 0)
        time = estimate.decode.step_time
        self.assertLessEqual(time.roofline_lower_seconds, time.expected_seconds)
        self.assertLessEqual(time.expected_seconds, time.roofline_upper_seconds)
        for phase, total in ((estimate.decode, time), (estimate.prefill, estimate.prefill.time)):
            self.assertAlmostEqual(sum(entry.seconds for entry in phase.breakdown), total.expected_seconds, places=9)
        memory = estimate.memory
        self.assertEqual(memory.weights_bytes + memory.kv_cache_bytes + memory.activations_bytes + memory.buffers_bytes
                         + memory.reserve_bytes, memory.used_bytes)

    def test_percentiles_of_a_rate_are_ordered(self):
        estimate = self.ask(questions.SERVING_RATE)
        self.assertIn(estimate.outcome, [self.outcome(name) for name in ("FEASIBLE", "MISSES_SLO", "UNSTABLE")])
        self.assertTrue(estimate.HasField("replica_count"))
        for latency in (estimate.ttft, estimate.tpot, estimate.end_to_end):
            self.assertLessEqual(latency.p50_seconds, latency.p95_seconds)
            self.assertLessEqual(latency.p95_seconds, latency.p99_seconds)
        batches = [point.batch_size for point in estimate.frontier]
        self.assertEqual(batches, sorted(batches))

    def test_prefill_and_decode_apart(self):
        roles = wire.module("sliceplan.v1.serving_pb2").PoolRole
        estimate = self.ask(questions.SERVING_APART)
        self.assertEqual([pool.role for pool in estimate.pools], [roles.POOL_ROLE_PREFILL, roles.POOL_ROLE_DECODE])
        self.assertEqual(estimate.chip_count, sum(pool.slice.total_chip_count * pool.replica_count
                                                  for pool in estimate.pools))
        self.assertGreater(estimate.disaggregation.prefill_per_decode_ratio, 0)
        self.assertEqual(len(estimate.cost.prices), 2)

    def test_the_same_question_has_the_same_answer(self):
        for question in (questions.SERVING_BATCH, questions.SERVING_RATE):
            self.assertEqual(self.ask(question), self.ask(question))

    def test_what_does_not_fit_is_an_outcome(self):
        estimate = self.ask({**questions.SERVING_BATCH, "slice": {"accelerator": "tpu-v5e", "topology": "2x2"},
                             "parallelism": {"ici": {"tensor": 4}}})
        self.assertEqual(estimate.outcome, self.outcome("OUT_OF_MEMORY"))
        self.assertEqual(estimate.shortfall.limit, "hbm_bytes")
        self.assertGreater(estimate.shortfall.missing, 0)

    def test_everything_wrong_at_once(self):
        failure = self.failure(
            {"model": {"preset": "llama-3-8b"}, "slice": {"accelerator": "tpu-v5e", "topology": "3x3"},
             "workload": {"promptTokens": 0, "prefixCacheHitRatio": 1, "precision": {"weights": 99}},
             "slo": {"ttft": {"p95Seconds": -1}}})
        self.assertEqual(failure.code, grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(sorted(failure.fields()),
                         ["slice.topology", "slo.ttft.p95_seconds", "workload.precision.weights",
                          "workload.prefix_cache_hit_ratio", "workload.prompt_tokens"])

    def test_roles_that_do_not_go_together(self):
        slice_ = {"accelerator": "tpu-v5e", "topology": "4x4"}
        failure = self.failure({"model": {"preset": "llama-3-8b"},
                                "pools": [{"role": "POOL_ROLE_PREFILL", "slice": slice_}, {"slice": slice_}]})
        self.assertEqual((failure.code, failure.fields()), (grpc.StatusCode.INVALID_ARGUMENT, ["pools"]))

    def test_proposals(self):
        request = json_format.ParseDict(questions.SERVING_SEARCH,
                                        wire.module("sliceplan.v1.sharding_pb2").ProposeShardingRequest())
        reply = self.client.planner.ProposeSharding(request, timeout=wire.CALL_SECONDS)
        self.assertGreater(len(reply.proposals), 0)
        for proposal in reply.proposals:
            self.assertEqual(proposal.serving.outcome, self.outcome("FEASIBLE"))
            self.assertLessEqual(proposal.serving.tpot.p95_seconds, 0.1)
            self.assertEqual([pool.slice for pool in proposal.pools], [pool.slice for pool in proposal.serving.pools])
        # vLLM cannot run every plan; which ones it cannot, the reply says.
        texts = [rendering.text for rendering in reply.proposals[0].renderings]
        unwritten = [warning for warning in reply.warnings if warning.code == "NOT_RENDERED"]
        self.assertGreaterEqual(len(texts), 1)
        self.assertLessEqual(len(texts) + len(unwritten), 3)
        self.assertTrue(all("vllm serve" in text or "kind: ClusterQueue" in text for text in texts))
