#include "client/cli/subcommands.h"

#include "client/cli/catalog.h"
#include "client/cli/collective.h"
#include "client/cli/describe.h"
#include "client/cli/operation.h"
#include "client/cli/pending.h"
#include "client/cli/serve.h"
#include "client/cli/shard.h"
#include "client/cli/train.h"
#include "proto/sliceplan/v1/measurement.pb.h"

namespace sliceplan::cli {
namespace {

template <typename Made, auto... kArguments>
std::unique_ptr<Question> Make() {
  return std::make_unique<Made>(kArguments...);
}

constexpr char kTrainExamples[] = R"(Examples:
  The step of a 70B model on two slices of 4,096 chips, with the plan given:
    sliceplan train --model llama-3-70b --slice tpu-v5p:16x16x16 --slices 2 --batch-tokens 4M \
      --sequence 4096 --tokens 15T --parallelism fsdp=512,context=2,tensor=4,dcn.data=2
  Your own model on 64 GPUs; the plan is found, and the end has to come within 30 days:
    sliceplan train --model ./config.json --slice h100:64 --tokens 300B --deadline 30d
  What a week of spot chips costs, in JSON:
    sliceplan train --model llama-3-8b --slice v5p-256 --tokens 1T --price-model spot --format json)";

constexpr char kServeExamples[] = R"(Examples:
  A 70B model in int8 on 16 chips, 32 sequences at a time:
    sliceplan serve --model llama-3-70b --slice tpu-v5e:4x4 --weights int8 --kv int8 \
      --prompt 2048 --output 500 --batch 32
  20 requests a second with targets: does one replica do, and how many are needed?
    sliceplan serve --model llama-3-70b --slice h100:8 --weights fp8 --prompt 2048~0.8 \
      --output 500 --rate 20 --ttft-p95 1s --tpot-p95 40ms
  Prefill and decode on slices of their own, two of one for three of the other:
    sliceplan serve --model llama-3-70b --prefill-slice tpu-v6e:2x4 --prefill-replicas 2 \
      --decode-slice tpu-v5e:4x4 --decode-replicas 3 --rate 10
  Throughput against latency, for a spreadsheet:
    sliceplan serve --model ./config.json --slice tpu-v6e:2x4 --format csv)";

constexpr char kShardExamples[] = R"(Examples:
  The fastest plans among two slices:
    sliceplan shard --model llama-3-70b --batch-tokens 4M --sequence 4096 --tokens 15T \
      --slice tpu-v5p:16x16x16 --slice tpu-v5p:16x16x24
  The cheapest within two weeks, on 64 to 512 chips of two kinds:
    sliceplan shard --model llama-3-8b --tokens 1T --accelerators v5e,v5p --chips 64..512 \
      --objective cost --deadline 14d
  What a cluster has free, and the manifest for the best plan:
    sliceplan shard --model ./config.json --tokens 300B --capacity free.json --emit gke
  The cheapest way to serve 20 requests a second within targets, and its command for vLLM:
    sliceplan shard --serve --model llama-3-70b --weights int8 --prompt 2048 --output 500 --rate 20 \
      --ttft-p95 1s --tpot-p95 40ms --accelerators v5e,v6e,h100 --chips 1..64 --objective cost
    sliceplan shard --serve --model llama-3-70b --weights fp8 --rate 5 --slice h100:8 --emit vllm)";

constexpr char kModelExamples[] = R"(Examples:
  sliceplan model llama-3-70b
  sliceplan model ./config.json --sequence 131072 --kv fp8
  curl -s https://example.org/config.json | sliceplan model -)";

constexpr char kMatmulExamples[] = R"(Examples:
  Where decode stops being bound by memory:
    sliceplan op matmul --m 64 --k 8192 --n 28672 --slice tpu-v5e
  A matmul whose contraction is sharded, on a 4x4 slice:
    sliceplan op matmul --m 4096 --k 8192 --n 28672 --slice tpu-v5e:4x4 --mesh x=4,y=4 \
      --lhs-sharding m=x,k=y --rhs-sharding k=y)";

constexpr char kAttentionExamples[] = R"(Examples:
  sliceplan op attention --query-length 8192 --key-length 8192 --heads 64 --kv-heads 8 --head-dim 128 \
    --slice tpu-v5p)";

constexpr char kElementwiseExamples[] = R"(Examples:
  sliceplan op elementwise --elements 64Mi --inputs 2 --slice h100)";

constexpr char kCollectiveExamples[] = R"(Examples:
  All chips of a slice:
    sliceplan collective all-gather --bytes 64Mi --slice tpu-v5p:8x8x8
  Two of its axes:
    sliceplan collective all-reduce --bytes 64Mi --slice tpu-v5p:8x8x8 --axes 0,1
  Every second chip of an axis, four in a group:
    sliceplan collective reduce-scatter --bytes 64Mi --slice tpu-v5p:8x8x8 --axes 2:4:2
  Tokens to 8 of 256 experts:
    sliceplan collective all-to-all --bytes 1Gi --slice h100:64 --experts 256 --experts-per-token 8)";

constexpr char kListExamples[] = R"(Examples:
  sliceplan catalog accelerators --filter 'kind=TPU'
  sliceplan catalog slices --filter 'accelerator="tpu-v5p" AND chip_count<=64'
  sliceplan catalog prices --filter 'accelerator="tpu-v6e" AND price_model=SPOT'
  sliceplan catalog models --filter 'name:llama')";

}  // namespace

std::vector<Subcommand> AllSubcommands() {
  using Kind = OperationQuestion::Kind;
  return {
      {"", "train", "Time, memory and cost of training a model on given slices", kTrainExamples, Make<TrainQuestion>},
      {"", "serve", "Latency, throughput and cost of serving a model on given slices", kServeExamples,
       Make<ServeQuestion>},
      {"", "shard", "The best slices and plans for a training job, or with --serve for a serving load", kShardExamples,
       Make<ShardQuestion>},
      {"", "model", "Parameters, FLOPs and KV cache of a model", kModelExamples, Make<DescribeQuestion>},
      {"op", "matmul", "A matmul, on one chip or sharded over a mesh", kMatmulExamples,
       Make<OperationQuestion, Kind::kMatmul>},
      {"op", "attention", "Softmax attention of one layer, on one chip", kAttentionExamples,
       Make<OperationQuestion, Kind::kAttention>},
      {"op", "elementwise", "An elementwise operation", kElementwiseExamples,
       Make<OperationQuestion, Kind::kElementwise>},
      {"", "collective", "Time of one collective over axes of a slice", kCollectiveExamples, Make<CollectiveQuestion>},
      {"", "compare", "A measured run against the model: in a later release", "",
       [] {
         return std::make_unique<PendingQuestion<v1::CompareMeasurementRequest, v1::CompareMeasurementResponse>>(
             "sliceplan.v1.AnalysisService/CompareMeasurement");
       }},
      {"catalog", "accelerators", "Chips with their constants", kListExamples, MakeListAcceleratorsQuestion},
      {"catalog", "slices", "Slices and GPU machines with their names in clouds", kListExamples,
       MakeListSlicesQuestion},
      {"catalog", "prices", "Prices with their dates", kListExamples, MakeListPricesQuestion},
      {"catalog", "models", "Model presets", kListExamples, MakeListModelsQuestion},
  };
}

std::string GroupDescription(const std::string& group) {
  if (group == "op") return "One operation on the roofline of a chip or a mesh: matmul, attention or elementwise";
  return "What is known of accelerators, slices, prices and models";
}

}  // namespace sliceplan::cli
