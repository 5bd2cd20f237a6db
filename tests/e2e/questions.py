"""Requests as proto3 JSON, which every client of the end-to-end tests can send."""

from harness import read

FULL_BATCH_TOKENS = 4 * 2**20
TRAINING_TOKENS = 15 * 10**12


def llama_training(ici, **fields):
    """Llama 3 70B from its own config.json on two slices of 4,096 chips, data parallel across them."""
    return {
        "model": {"huggingFaceConfig": read("examples", "llama-3-70b", "config.json")},
        "slice": {"accelerator": "tpu-v5p", "topology": "16x16x16", "sliceCount": 2},
        "workload": {"sequenceLength": 4096, "globalBatchTokens": str(FULL_BATCH_TOKENS),
                     "totalTokens": str(TRAINING_TOKENS)},
        "parallelism": {"ici": ici, "dcn": {"data": 2}},
        **fields,
    }


FSDP_CONTEXT = {"fsdp": 512, "context": 8}
FSDP_CONTEXT_TENSOR = {"fsdp": 512, "context": 2, "tensor": 4}
ROOFLINE = {"estimationMode": "ESTIMATION_MODE_ROOFLINE"}

FIVE_VIOLATIONS = {
    "model": {"preset": "llama-3-70b"},
    "slice": {"accelerator": "tpu-v5p", "topology": "16x16x16", "sliceCount": -2},
    "workload": {"sequenceLength": -5, "totalTokens": "-1", "gradientAccumulation": -2},
    "assumedMfuRatio": 1.5,
}
FIVE_FIELDS = ("assumed_mfu_ratio", "slice.slice_count", "workload.gradient_accumulation", "workload.sequence_length",
               "workload.total_tokens")

# No plan given and many experts: thousands of plans to evaluate.
LONG_SEARCH = {
    "model": {"preset": "deepseek-v3"},
    "slice": {"accelerator": "tpu-v5p", "topology": "16x16x16"},
    "workload": {"globalBatchTokens": str(4 * FULL_BATCH_TOKENS)},
}

# Plans of two slices of 64 chips.
SMALL_SEARCH = {
    "model": {"preset": "llama-3-8b"},
    "training": {"sequenceLength": 4096, "globalBatchTokens": str(FULL_BATCH_TOKENS),
                 "totalTokens": str(TRAINING_TOKENS)},
    "slices": {"slices": [{"accelerator": "tpu-v5p", "topology": "4x4x4"},
                          {"accelerator": "tpu-v5e", "topology": "8x8"}]},
}

# Many experts on every slice that is sold.
LONG_PROPOSALS = {"model": {"preset": "deepseek-v3"}, "training": {"globalBatchTokens": str(4 * FULL_BATCH_TOKENS)}}

_SERVED = {"model": {"preset": "llama-3-70b"}, "slice": {"accelerator": "tpu-v5e", "topology": "4x4"}}
# Chapter 7 of "How To Scale Your Model": int8 weights and cache, 8,192 tokens of context.
SERVING_BATCH = {
    **_SERVED, "parallelism": {"ici": {"tensor": 16}}, "estimationMode": "ESTIMATION_MODE_ROOFLINE",
    "workload": {"promptTokens": 8064, "outputTokens": 256, "batchSize": 32,
                 "precision": {"weights": "DATA_TYPE_INT8", "kvCache": "DATA_TYPE_INT8"}}}
SERVING_RATE = {
    **_SERVED, "slo": {"ttft": {"p95Seconds": 2}, "tpot": {"p95Seconds": 0.1}},
    "workload": {"promptDistribution": {"moments": {"meanTokens": 1000, "coefficientOfVariation": 0.8}},
                 "outputTokens": 200, "requestsPerSecond": 2, "precision": {"weights": "DATA_TYPE_INT8"}}}
SERVING_APART = {
    "model": {"preset": "llama-3-70b"},
    "workload": {"requestsPerSecond": 2, "precision": {"weights": "DATA_TYPE_INT8"}},
    "pools": [{"role": "POOL_ROLE_PREFILL", "slice": {"accelerator": "tpu-v6e", "topology": "2x4"}},
              {"role": "POOL_ROLE_DECODE", "slice": {"accelerator": "tpu-v5e", "topology": "4x4"}, "replicaCount": 2}]}
SERVING_SEARCH = {
    "model": {"preset": "llama-3-8b"}, "serving": {"promptTokens": 1000, "outputTokens": 200, "requestsPerSecond": 5},
    "constraints": {"slo": {"tpot": {"p95Seconds": 0.1}}},
    "slices": {"slices": [{"accelerator": "tpu-v5e", "topology": "2x4"}, {"accelerator": "h100", "chipCount": 8}]}}
