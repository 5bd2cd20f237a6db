"""Proposals: the search from the request to the reply, its deadline, a caller that leaves."""

import time

from google.protobuf import json_format
import grpc

from cases import ServerCase
import questions
import wire


def proposals_request(question):
    """ProposeShardingRequest of a question in JSON."""
    return json_format.ParseDict(question, wire.module("sliceplan.v1.sharding_pb2").ProposeShardingRequest())


class Proposals(ServerCase):
    """One call each."""

    def propose(self, question, seconds=wire.CALL_SECONDS):
        return self.client.planner.ProposeSharding(proposals_request(question), timeout=seconds)

    def test_plans_of_two_slices(self):
        reply = self.propose(questions.SMALL_SEARCH)
        outcomes = wire.module("sliceplan.v1.estimate_pb2").Outcome
        steps = [proposal.training.step_time.expected_seconds for proposal in reply.proposals]
        self.assertEqual(len(steps), 5)
        self.assertEqual(steps, sorted(steps))
        for proposal in reply.proposals:
            self.assertEqual(proposal.training.outcome, outcomes.OUTCOME_FEASIBLE)
            self.assertEqual([pool.slice for pool in proposal.pools], [proposal.training.slice])
        self.assertEqual([bool(proposal.beats_next_because) for proposal in reply.proposals], [True] * 4 + [False])
        self.assertEqual([bool(proposal.renderings) for proposal in reply.proposals], [True] + [False] * 4)
        self.assertTrue(reply.search.exhaustive)
        self.assertEqual(reply.search.candidate_slice_count, 2)
        left_out = sum(pruned.count for pruned in reply.search.pruned)
        self.assertEqual(reply.search.evaluated_count + left_out, reply.search.considered_count)

    def test_the_same_question_has_the_same_answer(self):
        first, second = self.propose(questions.SMALL_SEARCH), self.propose(questions.SMALL_SEARCH)
        for reply in (first, second):
            reply.search.ClearField("elapsed_seconds")
        self.assertEqual(first, second)

    def test_everything_wrong_at_once(self):
        failure = wire.failure_of(self.client.planner.ProposeSharding, proposals_request(
            {"model": {"preset": "llama-3-8b"}, "topK": 0, "constraints": {"hbmHeadroomRatio": 2},
             "capacity": {"pools": [{"accelerator": "v5e", "topology": "3x3"}]}}))
        self.assertEqual(failure.code, grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(sorted(failure.fields()),
                         ["capacity.pools[0].topology", "constraints.hbm_headroom_ratio", "top_k"])

    def test_a_deadline_cuts_the_search_and_is_met(self):
        # The entire catalog and a model of many experts; what was found until then is an answer.
        seconds = 5.0
        start = time.monotonic()
        reply = self.propose(questions.LONG_PROPOSALS, seconds=seconds)
        self.assertLess(time.monotonic() - start, seconds)
        self.assertGreater(reply.search.considered_count, 0)

    def test_a_time_limit_cuts_the_search(self):
        reply = self.propose({**questions.LONG_PROPOSALS, "searchTimeLimit": "0.001s"})
        self.assertFalse(reply.search.exhaustive)

    def test_a_caller_that_leaves_ends_the_search(self):
        request = proposals_request(questions.LONG_PROPOSALS)
        # A slow machine may not have sent the request when the caller leaves, a fast one may have answered.
        codes = []
        for milliseconds in (5, 10, 20, 40, 80, 160, 320, 5, 10, 20):
            name = f"left-{len(codes)}"
            call = self.client.planner.ProposeSharding.future(
                request, timeout=wire.CALL_SECONDS, metadata=(("x-request-id", name),))
            time.sleep(milliseconds / 1e3)
            call.cancel()
            # Calls of one connection arrive in their order: after this one the server knows what came of it.
            self.assertEqual(self.client.health_status(), "SERVING")
            try:
                codes.append(self.server.wait_for_log(
                    lambda line, name=name: line.get("request_id") == name, seconds=5)["code"])
            except AssertionError:
                codes.append("never asked")
            if codes[-1] == "CANCELLED":
                break
        self.assertEqual(codes[-1], "CANCELLED", codes)
        self.assertEqual(self.client.health_status(), "SERVING")
