// sliceplan serve: from arguments to the request, and from replies to tables.
#include "client/cli/serve.h"

#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "client/cli/report.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/client/cli/parse.h"

namespace sliceplan::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class NoBackend : public Backend {
  google::rpc::Status Call(const std::string&, const google::protobuf::Message&, google::protobuf::Message*) override {
    ADD_FAILURE() << "called";
    return google::rpc::Status();
  }
};

struct Case {
  std::vector<std::string> arguments;
  const char* request;
};

const Case kCases[] = {
    {{"--model", "m", "--slice", "tpu-v5e:4x4", "--weights", "int8", "--kv", "int8", "--activations", "bf16",
      "--compute", "bf16", "--prompt", "2048", "--output", "500", "--batch", "32"},
     R"pb(
       model { preset: "m" }
       slice { accelerator: "tpu-v5e" topology: "4x4" }
       workload {
         prompt_tokens: 2048
         output_tokens: 500
         batch_size: 32
         precision {
           weights: DATA_TYPE_INT8
           kv_cache: DATA_TYPE_INT8
           activations: DATA_TYPE_BF16
           compute: DATA_TYPE_BF16
         }
       })pb"},
    {{"--model",      "m",    "--slice",      "h100:8", "--slices",    "2",     "--rate",      "20",
      "--burstiness", "2",    "--prefix-hit", "30%",    "--ttft-p95",  "1s",    "--tpot-p95",  "40ms",
      "--tpot-p50",   "0.03", "--e2e-p99",    "1min",   "--ttft-mean", "500ms", "--max-batch", "64"},
     R"pb(
       model { preset: "m" }
       slice { accelerator: "h100" chip_count: 8 slice_count: 2 }
       workload { requests_per_second: 20 arrival_burstiness: 2 prefix_cache_hit_ratio: 0.3 max_batch_size: 64 }
       slo {
         ttft { mean_seconds: 0.5 p95_seconds: 1 }
         tpot { p50_seconds: 0.03 p95_seconds: 0.04 }
         end_to_end { p99_seconds: 60 }
       })pb"},
    {{"--model", "m", "--slice", "h100:8", "--prompt", "2048~0.8", "--output", "100=3,1Ki=1", "--concurrency", "64"},
     R"pb(
       model { preset: "m" }
       slice { accelerator: "h100" chip_count: 8 }
       workload {
         prompt_distribution { moments { mean_tokens: 2048 coefficient_of_variation: 0.8 } }
         output_distribution {
           histogram {
             bins { tokens: 100 weight: 3 }
             bins { tokens: 1024 weight: 1 }
           }
         }
         concurrency: 64
       })pb"},
    {{"--model",      "m",        "--slice",       "h100:8", "--parallelism",     "tensor=4,data=2",
      "--chunk",      "512",      "--block",       "32",     "--hbm-utilization", "90%",
      "--kv-split",   "sequence", "--windowed-kv", "keep",   "--draft-tokens",    "4",
      "--acceptance", "0.7",      "--draft-cost",  "5%",     "--load-imbalance",  "1.2",
      "--allow-idle"},
     R"pb(
       model { preset: "m" }
       slice { accelerator: "h100" chip_count: 8 }
       parallelism {
         ici { data: 2 tensor: 4 }
         allow_idle_chips: true
       }
       workload {
         speculative { draft_tokens: 4 acceptance_ratio: 0.7 draft_cost_ratio: 0.05 }
         prefill_chunk_tokens: 512
         kv_block_tokens: 32
         hbm_utilization_ratio: 0.9
         kv_cache_split: KV_CACHE_SPLIT_SEQUENCE
         windowed_kv_policy: WINDOWED_KV_POLICY_KEEP
         expert_load_imbalance_ratio: 1.2
       })pb"},
    {{"--model", "m", "--slice", "h100:8", "--mode", "roofline", "--profile", "vllm-gpu", "--price", "2",
      "--price-model", "spot", "--region", "us-east5", "--output-price-ratio", "4"},
     R"pb(
       model { preset: "m" }
       slice { accelerator: "h100" chip_count: 8 }
       estimation_mode: ESTIMATION_MODE_ROOFLINE
       calibration_profile: "vllm-gpu"
       pricing { region: "us-east5" price_model: PRICE_MODEL_SPOT usd_per_chip_hour: 2 }
       cost_split { kind: COST_SPLIT_KIND_FIXED_RATIO output_to_input_price_ratio: 4 })pb"},
    {{"--model", "m", "--slice", "h100:8", "--parallelism", "tp=8", "--replicas", "3"},
     R"pb(
       model { preset: "m" }
       pools {
         slice { accelerator: "h100" chip_count: 8 }
         parallelism { ici { tensor: 8 } }
         replica_count: 3
       })pb"},
    {{"--model", "m", "--slice", "h100:8", "--role", "decode"},
     R"pb(
       model { preset: "m" }
       pools {
         role: POOL_ROLE_DECODE
         slice { accelerator: "h100" chip_count: 8 }
       })pb"},
    {{"--model", "m", "--prefill-slice", "tpu-v6e:2x4", "--prefill-replicas", "2", "--prefill-parallelism", "tensor=8",
      "--decode-slice", "tpu-v5e:4x4", "--decode-replicas", "3", "--decode-parallelism", "tensor=16"},
     R"pb(
       model { preset: "m" }
       pools {
         role: POOL_ROLE_PREFILL
         slice { accelerator: "tpu-v6e" topology: "2x4" }
         parallelism { ici { tensor: 8 } }
         replica_count: 2
       }
       pools {
         role: POOL_ROLE_DECODE
         slice { accelerator: "tpu-v5e" topology: "4x4" }
         parallelism { ici { tensor: 16 } }
         replica_count: 3
       })pb"},
};

TEST(ServeFlagsTest, MakeTheRequest) {
  for (const Case& c : kCases) {
    ServeQuestion question;
    const ParsedFlags parsed(&question, c.arguments);
    EXPECT_THAT(parsed.problems(), IsEmpty());
    NoBackend backend;
    EXPECT_EQ(question.Complete(backend).code(), 0);
    v1::EstimateServingRequest expected;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(c.request, &expected)) << c.request;
    EXPECT_EQ(question.request()->DebugString(), expected.DebugString());
  }
}

TEST(ServeFlagsTest, SayWhatCannotBeRead) {
  struct Wrong {
    std::vector<std::string> arguments;
    const char* problem;
  };
  const std::vector<std::string> model = {"--model", "m"};
  for (const Wrong& c : {
           Wrong{{}, "--slice is missing (or --prefill-slice and --decode-slice)"},
           Wrong{{"--slice", "h100:8", "--decode-slice", "h100:8"}, "exclude each other"},
           Wrong{{"--prefill-slice", "h100:8"}, "--decode-slice is missing"},
           Wrong{{"--decode-slice", "h100:8", "--prefill-replicas", "2"}, "--prefill-slice is missing"},
           Wrong{{"--decode-slice", "h100:8", "--replicas", "2"}, "write --prefill-replicas and --decode-replicas"},
           Wrong{{"--decode-slice", "h100:8", "--parallelism", "tp=8"}, "--parallelism is of --slice"},
           Wrong{{"--slice", "h100:8", "--batch", "8", "--rate", "3"}, "--batch and --rate exclude each other"},
           Wrong{{"--slice", "h100:8", "--prompt", "long"}, "--prompt: "},
           Wrong{{"--slice", "h100:8", "--prompt", "100~wide"}, "--prompt: "},
           Wrong{{"--slice", "h100:8", "--prompt", "3G"}, "--prompt: 3G are too many"},
           Wrong{{"--slice", "h100:8", "--output", "100="}, "--output: "},
           Wrong{{"--slice", "h100:8", "--role", "spare"}, "--role: "},
           Wrong{{"--slice", "h100:8", "--weights", "int3"}, "--weights: "},
           Wrong{{"--slice", "h100:8", "--ttft-p95", "soon"}, "--ttft-p95: "},
       }) {
    ServeQuestion question;
    std::vector<std::string> arguments = model;
    arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
    const ParsedFlags parsed(&question, arguments);
    ASSERT_EQ(parsed.problems().size(), 1u) << c.problem;
    EXPECT_THAT(parsed.problems()[0], HasSubstr(c.problem));
  }
}

// Fields of pools in errors and advice are the flags that made them.
TEST(ServeFlagsTest, PoolsAreNamedByTheirFlags) {
  ServeQuestion apart;
  const ParsedFlags two(&apart, {"--model", "m", "--prefill-slice", "h100:8", "--decode-slice", "h100:8"});
  NoBackend backend;
  EXPECT_EQ(apart.Complete(backend).code(), 0);
  EXPECT_EQ(two.flags().FlagFor("pools[0].slice.topology"), "--prefill-slice");
  EXPECT_EQ(two.flags().FlagFor("pools[1].replica_count"), "--decode-replicas");
  EXPECT_EQ(two.flags().ChangeAsFlag("pools[1].parallelism.ici.tensor", "4"), "--decode-parallelism tensor=4");
  ServeQuestion alone;
  const ParsedFlags one(&alone, {"--model", "m", "--slice", "h100:8", "--replicas", "2"});
  EXPECT_EQ(alone.Complete(backend).code(), 0);
  EXPECT_EQ(one.flags().FlagFor("pools[0].slice.topology"), "--slice");
  EXPECT_EQ(one.flags().FlagFor("pools[0].replica_count"), "--replicas");
  ServeQuestion plain;
  const ParsedFlags none(&plain, {"--model", "m", "--slice", "h100:8"});
  EXPECT_EQ(plain.Complete(backend).code(), 0);
  EXPECT_EQ(none.flags().ChangeAsFlag("pools[0].replica_count", "3"), "--replicas 3");
}

// ---- The table ----

constexpr char kReply[] = R"pb(
  estimate {
    outcome: OUTCOME_FEASIBLE
    max_batch_size: 43
    max_context_tokens: 131072
    critical_batch_size: 120
    memory {
      weights_bytes: 8589934592
      kv_cache_bytes: 4294967296
      used_bytes: 12884901888
      capacity_bytes: 17179869184
      kv_pool_bytes: 6442450944
      kv_pool_tokens: 98304
    }
    prefill {
      time { roofline_lower_seconds: 0.1 roofline_upper_seconds: 0.2 expected_seconds: 0.12 }
      bound: RESOURCE_MATRIX_UNIT
      mfu_ratio: 0.41
      breakdown { component: COMPONENT_FEED_FORWARD resource: RESOURCE_MATRIX_UNIT phase: PHASE_PREFILL seconds: 0.12 }
    }
    decode {
      step_time {
        roofline_lower_seconds: 0.015
        roofline_upper_seconds: 0.03
        expected_seconds: 0.019
        p05_seconds: 0.018
        p95_seconds: 0.021
      }
      kv_seconds: 0.004
      weights_seconds: 0.01
      bound: RESOURCE_HBM
      breakdown { component: COMPONENT_FEED_FORWARD resource: RESOURCE_HBM phase: PHASE_DECODE seconds: 0.019 }
    }
    ttft { mean_seconds: 0.2 p50_seconds: 0.18 p95_seconds: 0.4 p99_seconds: 0.6 }
    tpot { mean_seconds: 0.019 p50_seconds: 0.019 p95_seconds: 0.022 p99_seconds: 0.03 }
    throughput {
      output_tokens_per_second: 2263
      output_tokens_per_second_per_chip: 141
      requests_per_second: 4.4
      saturation_requests_per_second: 5.1
    }
    cost {
      usd_per_million_input_tokens: 0.3
      usd_per_million_output_tokens: 2.2
      usd_per_hour: 19.2
      usd_per_chip_hour: 1.2
      prices { row { provider: "gcp" region: "us-east5" price_model: PRICE_MODEL_ON_DEMAND as_of: "2026-08-22" } }
    }
    frontier {
      batch_size: 1
      parallelism { ici { tensor: 16 } }
      tpot_seconds: 0.012
      output_tokens_per_second_per_chip: 5.2
    }
    frontier {
      batch_size: 43
      parallelism { ici { tensor: 16 } }
      tpot_seconds: 0.019
      output_tokens_per_second_per_chip: 141
      usd_per_million_output_tokens: 2.2
    }
    replica_count: 5
    batch_size: 43
    chip_count: 16
    pools {
      role: POOL_ROLE_BOTH
      slice {
        slice { accelerator: "tpu-v5e" topology: "4x4" }
        slice_count: 1
        total_chip_count: 16
      }
      parallelism { ici { tensor: 16 } }
      replica_count: 1
      busy_ratio: 0.8
    }
    workload { prompt_tokens: 2048 output_tokens: 500 requests_per_second: 20 }
    advice {
      code: "INT8_KV"
      sentence: "int8 KV doubles the batch."
      cost_change_ratio: -0.38
      changes { field: "workload.precision.kv_cache" value: "DATA_TYPE_INT8" }
    }
  }
  engine_version: "1.0.0"
)pb";

std::string Table(ServeQuestion& question, const std::string& reply) {
  const ParsedFlags parsed(&question, {"--model", "llama-3-70b", "--slice", "tpu-v5e:4x4"});
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      reply, static_cast<v1::EstimateServingResponse*>(question.response())));
  std::ostringstream out;
  Report report(&out, Style());
  question.Print(parsed.flags(), report);
  return out.str();
}

TEST(ServeReportTest, ShowsWhatAPersonNeeds) {
  ServeQuestion question;
  const std::string table = Table(question, kReply);
  for (const char* text : {"FEASIBLE  serving llama-3-70b on tpu-v5e 4x4 (16 chips)\n",
                           "2,048 tokens in, 500 out, 20.0 requests/s",
                           "43 sequences per replica; at most 43 fit; bound by compute from 120",
                           "2.26k output tokens/s, 141 per chip",
                           "saturated at 5.10",
                           "$2.20 per million output tokens, $0.300 input",
                           "gcp us-east5, on demand, 2026-08-22",
                           "5 for this rate",
                           "decode by HBM, prefill by matrix unit",
                           "tensor 16, busy 80.0%",
                           "p50 19.0 ms, p95 22.0 ms, p99 30.0 ms",
                           "first token (TTFT)",
                           "400 ms",
                           "per output token (TPOT)",
                           "22.0 ms",
                           "KV pool",
                           "98,304 tokens a replica",
                           "One decode step",
                           "18.0 ms to 21.0 ms in 9 of 10 runs",
                           "Prefill of one prompt",
                           "MFU 41.0%",
                           "output tokens/s per chip",
                           "time per output token",
                           "batch 43, tp=16",
                           "[--kv int8]",
                           "cost -38.0%"}) {
    EXPECT_THAT(table, HasSubstr(text));
  }
  // The answer comes before its explanation.
  EXPECT_LT(table.find("throughput"), table.find("Latency"));
  EXPECT_LT(table.find("Latency"), table.find("Memory of the fullest chip"));
  EXPECT_LT(table.find("Memory of the fullest chip"), table.find("One decode step"));
  for (const absl::string_view line : absl::StrSplit(table, '\n')) EXPECT_LE(line.size(), kMaxColumns) << line;
}

TEST(ServeReportTest, SaysWhatIsMissing) {
  ServeQuestion question;
  const std::string table = Table(question, R"pb(
    estimate {
      outcome: OUTCOME_MISSES_SLO
      shortfall { limit: "slo.tpot.p95_seconds" sentence: "p95 is 10 ms too slow." }
      smallest_fix {
        sentence: "A batch of 24."
        changes { field: "workload.batch_size" value: "24" }
      }
      pools {
        role: POOL_ROLE_PREFILL
        slice {
          slice { accelerator: "tpu-v6e" topology: "2x4" }
          slice_count: 1
          total_chip_count: 8
        }
        replica_count: 2
      }
      cost { prices { sentence: "No public price." } }
    }
  )pb");
  EXPECT_THAT(table, HasSubstr("MISSES SLO  serving llama-3-70b on prefill 2 replicas of tpu-v6e 2x4 (8 chips)"));
  EXPECT_THAT(table, HasSubstr("p95 is 10 ms too slow."));
  EXPECT_THAT(table, HasSubstr("A batch of 24. [--batch 24]"));
  EXPECT_THAT(table, HasSubstr("No public price."));
  EXPECT_THAT(table, Not(HasSubstr("Latency")));
}

TEST(ServeReportTest, CsvIsTheFrontier) {
  ServeQuestion question;
  Table(question, kReply);
  EXPECT_EQ(question.Csv(),
            "batch_size,parallelism,tpot_seconds,ttft_seconds,output_tokens_per_second_per_chip,"
            "usd_per_million_output_tokens\n"
            "1,\"tp=16\",0.012,,5.2,\n"
            "43,\"tp=16\",0.019,,141,2.2\n");
}

}  // namespace
}  // namespace sliceplan::cli
