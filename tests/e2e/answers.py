"""The main question and its published answers."""

import json
import math

from cases import ServerCase, training_request
import questions
from harness import read
import wire

# TPU v5p as its maker states it, and the shape of Llama 3 70B.
PEAK_FLOPS_PER_SECOND = 4.59e14
ICI_AXIS_BYTES_PER_SECOND = 1.8e11  # 9e10 each way
FFN_DIM = 28672
PARAMETER_COUNT = 70_553_706_496

FLOPS_PER_ICI_BYTE = PEAK_FLOPS_PER_SECOND / ICI_AXIS_BYTES_PER_SECOND
# The scaling book, "How to parallelize a Transformer for training": tokens per chip that hide FSDP's traffic on three
# axes, and those that hide FSDP on two and tensor parallelism on one at the best split.
FSDP_TOKENS_PER_CHIP = FLOPS_PER_ICI_BYTE / 3
FSDP_TENSOR_TOKENS_PER_CHIP = FLOPS_PER_ICI_BYTE**2 / (2 * 1 * FFN_DIM)

SECONDS_PER_DAY = 86400


def resource(name):
    return wire.module("sliceplan.v1.estimate_pb2").Resource.Value("RESOURCE_" + name)


class MainQuestion(ServerCase):
    """Llama 3 70B on two v5p slices of 4,096 chips."""

    def check_sums(self, estimate):
        step = estimate.step_time.expected_seconds
        if not estimate.step_time.assumed:
            parts = sum(entry.seconds for entry in estimate.breakdown)
            self.assertTrue(math.isclose(parts, step, rel_tol=1e-9), (parts, step))
        memories = [estimate.memory, *estimate.stage_memory]
        for memory in memories:
            parts = (memory.parameters_bytes + memory.gradients_bytes + memory.optimizer_bytes +
                     memory.activations_bytes + memory.logits_bytes + memory.gathered_weights_bytes +
                     memory.workspace_bytes + memory.buffers_bytes + memory.reserve_bytes - memory.not_coexisting_bytes)
            self.assertEqual(parts, memory.used_bytes)
            self.assertEqual(memory.capacity_bytes - memory.used_bytes, memory.headroom_bytes)

    def test_fsdp_alone_is_bound_by_the_interconnect(self):
        estimate = self.training(questions.llama_training(questions.FSDP_CONTEXT, **questions.ROOFLINE))
        self.assertEqual(estimate.chip_count, 8192)
        self.assertEqual(estimate.bottleneck.resource, resource("ICI"))
        self.assertEqual(estimate.thresholds.tokens_per_chip, questions.FULL_BATCH_TOKENS / 8192)
        self.assertAlmostEqual(estimate.thresholds.data_tokens_per_chip, FSDP_TOKENS_PER_CHIP, delta=0.5)
        self.assertRegex(estimate.bottleneck.sentence, r"\b512\b.*\b850\b")
        self.check_sums(estimate)

    def test_with_tensor_parallelism_it_is_not(self):
        estimate = self.training(questions.llama_training(questions.FSDP_CONTEXT_TENSOR, **questions.ROOFLINE))
        self.assertEqual(estimate.bottleneck.resource, resource("MATRIX_UNIT"))
        self.assertAlmostEqual(estimate.thresholds.fsdp_tensor_tokens_per_chip, FSDP_TENSOR_TOKENS_PER_CHIP, delta=0.5)
        self.assertRegex(estimate.bottleneck.sentence, r"\b512\b.*\b113\b")
        self.check_sums(estimate)
        slower = self.training(questions.llama_training(questions.FSDP_CONTEXT, **questions.ROOFLINE))
        self.assertLess(estimate.step_time.expected_seconds, slower.step_time.expected_seconds)

    def test_thresholds_are_said_in_words(self):
        estimate = self.training(questions.llama_training(questions.FSDP_CONTEXT, **questions.ROOFLINE))
        self.assertRegex(estimate.thresholds.sentence, r"\b850\b")

    def test_sums_hold_for_expected_times(self):
        for ici in (questions.FSDP_CONTEXT, questions.FSDP_CONTEXT_TENSOR):
            estimate = self.training(questions.llama_training(ici))
            self.assertGreaterEqual(estimate.step_time.expected_seconds, estimate.step_time.roofline_lower_seconds)
            self.check_sums(estimate)

    def test_advice_is_possible(self):
        # No plan of the same chips and formats is faster than its FLOPs at the chips' peak.
        estimate = self.training(questions.llama_training(questions.FSDP_CONTEXT, **questions.ROOFLINE))
        advice = {item.code: item for item in estimate.advice}["ADD_TENSOR_PARALLELISM"]
        self.assertEqual({change.field: change.value for change in advice.changes},
                         {"parallelism.ici.tensor": "4", "parallelism.ici.context": "2"})
        floor = estimate.model_flops_per_step / (estimate.chip_count * PEAK_FLOPS_PER_SECOND)
        self.assertGreaterEqual(advice.expected_seconds, floor)
        self.assertLess(advice.expected_seconds, estimate.step_time.expected_seconds)

    def test_the_whole_pod_at_assumed_mfu(self):
        # The scaling book, "Training Llama 3 on TPUs": 44 days and 6.3e24 FLOPs on 8,960 chips at 40%.
        question = questions.llama_training({}, assumedMfuRatio=0.4)
        question["slice"] = {"accelerator": "tpu-v5p", "topology": "16x20x28"}
        del question["parallelism"]
        estimate = self.training(question)
        self.assertTrue(estimate.step_time.assumed)
        days = estimate.time_to_train_seconds / SECONDS_PER_DAY
        self.assertGreaterEqual(days, 44)
        self.assertLessEqual(days, 45)
        self.assertAlmostEqual(estimate.total_model_flops, 6.3e24, delta=0.1e24)
        said = " ".join(item.sentence for item in [*estimate.warnings, *estimate.assumptions])
        self.assertRegex(said, r"\b5 and 7\b")
        self.assertIn("not sold as one slice", said)
        self.check_sums(estimate)

    def test_same_request_same_bytes(self):
        call = self.client.channel.unary_unary("/sliceplan.v1.PlannerService/EstimateTraining")
        for question in (questions.llama_training(questions.FSDP_CONTEXT_TENSOR), questions.LONG_SEARCH):
            request = training_request(question).SerializeToString()
            replies = [call(request, timeout=wire.CALL_SECONDS) for _ in range(2)]
            self.assertGreater(len(replies[0]), 1000)
            self.assertEqual(*replies)


class Models(ServerCase):
    """DescribeModel."""

    def test_parameters_of_preset_and_of_config(self):
        spec = wire.module("sliceplan.v1.model_pb2").ModelSpec
        config = read("examples", "llama-3-70b", "config.json")
        for model in (spec(preset="llama-3-70b"), spec(hugging_face_config=config)):
            self.assertEqual(self.describe(model=model).parameters.total_count, PARAMETER_COUNT)

    def test_components_add_up(self):
        reply = self.describe(model=wire.module("sliceplan.v1.model_pb2").ModelSpec(preset="deepseek-v3"))
        mtp = wire.module("sliceplan.v1.estimate_pb2").Component.COMPONENT_MTP
        parts = {part.component: part.count for part in reply.parameters.components}
        self.assertEqual(parts.pop(mtp), reply.parameters.mtp_count)
        self.assertEqual(sum(parts.values()), reply.parameters.total_count)
        # "DeepSeek-V3 Technical Report": 671B in all, 37B of them active.
        self.assertEqual(round(reply.parameters.total_count / 1e9), 671)


class Reports(ServerCase):
    """What users measured and wrote down; the rows of known_answers.jsonl name the report."""

    def test_every_row(self):
        rows = [json.loads(line) for line in read("tests", "e2e", "known_answers.jsonl").splitlines()]
        self.assertTrue(rows)
        for row in rows:
            with self.subTest(row["url"], quantity=row["quantity"]):
                if "describe" in row:
                    spec = wire.module("sliceplan.v1.model_pb2").ModelSpec(**row["describe"])
                    reply = self.describe(model=spec)
                else:
                    reply = self.training(row["train"])
                value = reply
                for name in row["quantity"].split("."):
                    value = value[int(name)] if name.isdigit() else getattr(value, name)
                self.assertTrue(math.isclose(value * row.get("times", 1), row["value"], rel_tol=row["tolerance"]),
                                f"{value * row.get('times', 1)} is not {row['value']}")
