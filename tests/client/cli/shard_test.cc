// sliceplan shard: from arguments to the request, and from replies to the table.
#include "client/cli/shard.h"

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/report.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/client/cli/parse.h"

namespace sliceplan::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

v1::ProposeShardingRequest Request(const std::string& text) {
  v1::ProposeShardingRequest request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
  return request;
}

// The request that the arguments make.
std::string Asked(ShardQuestion& question, const std::vector<std::string>& arguments, const std::string& in = "") {
  const ParsedFlags parsed(&question, arguments, in);
  EXPECT_THAT(parsed.problems(), IsEmpty());
  class NoBackend : public Backend {
    google::rpc::Status Call(const std::string&, const google::protobuf::Message&,
                             google::protobuf::Message*) override {
      ADD_FAILURE() << "called";
      return google::rpc::Status();
    }
  } backend;
  EXPECT_EQ(question.Complete(backend).code(), 0);
  return question.request()->DebugString();
}

struct Case {
  std::vector<std::string> arguments;
  const char* request;
  const char* in = "";
};

TEST(ShardFlagsTest, MakeTheRequest) {
  for (const Case&
           c : {
               Case{
                   {"--model", "m", "--sequence", "4096", "--batch-tokens", "4M", "--tokens", "15T"},
                   R"pb(
                     model { preset: "m" }
                     training { sequence_length: 4096 global_batch_tokens: 4194304 total_tokens: 15000000000000 })pb"},
               Case{{"--model", "m", "--slice", "tpu-v5p:4x4x8", "--slice", "h100:64", "--slices", "2"},
                    R"pb(
                      model { preset: "m" }
                      slices {
                        slices { accelerator: "tpu-v5p" topology: "4x4x8" slice_count: 2 }
                        slices { accelerator: "h100" chip_count: 64 slice_count: 2 }
                      })pb"},
               Case{{"--model", "m", "--accelerators", "v5e,v5p", "--chips", "64..512", "--slices-max", "4"},
                    R"pb(
                      model { preset: "m" }
                      accelerators {
                        names: "v5e"
                        names: "v5p"
                        min_chip_count: 64
                        max_chip_count: 512
                        max_slice_count: 4
                      })pb"},
               Case{{"--model", "m", "--capacity", "-"},
                    R"pb(
                      model { preset: "m" }
                      capacity { pools { accelerator: "v5e" topology: "4x4" free_slice_count: 3 } })pb",
                    R"({"pools": [{"accelerator": "v5e", "topology": "4x4", "freeSliceCount": 3}]})"},
               Case{{"--model",
                     "m",
                     "--objective",
                     "cost",
                     "--deadline",
                     "14d",
                     "--budget",
                     "2M",
                     "--max-chips",
                     "4Ki",
                     "--headroom",
                     "10%",
                     "--fix",
                     "tensor=8,dcn.data=2",
                     "--forbid",
                     "pipeline,context",
                     "--allow-idle",
                     "--allow-padding",
                     "--allow-offload",
                     "--top",
                     "3",
                     "--time-limit",
                     "1500ms"},
                    R"pb(
                      model { preset: "m" }
                      objective: OBJECTIVE_MIN_COST
                      constraints {
                        job_deadline_seconds: 1209600
                        budget_usd: 2000000
                        max_chip_count: 4096
                        hbm_headroom_ratio: 0.1
                        fixed_ici { tensor: 8 }
                        fixed_dcn { data: 2 }
                        forbidden_axes: PARALLELISM_AXIS_PIPELINE
                        forbidden_axes: PARALLELISM_AXIS_CONTEXT
                        allow_idle_chips: true
                        allow_padding: true
                        allow_offload: true
                      }
                      top_k: 3
                      search_time_limit { seconds: 1 nanos: 500000000 })pb"},
               Case{{"--model", "m", "--emit", "gke", "--remat", "full", "--price", "2"},
                    R"pb(
                      model { preset: "m" }
                      training { remat_policy: REMAT_POLICY_FULL }
                      pricing { usd_per_chip_hour: 2 }
                      render: RENDER_TARGET_GKE_JOBSET
                      top_k: 1)pb"},
           }) {
    ShardQuestion question;
    EXPECT_EQ(Asked(question, c.arguments, c.in), Request(c.request).DebugString());
  }
}

TEST(ShardFlagsTest, MakeTheRequestForServing) {
  for (const Case& c : {
           Case{{"--model", "m", "--serve"}, R"pb(
                  model { preset: "m" }
                  serving {})pb"},
           // --serve need not come first.
           Case{
               {"--model",      "m",     "--weights",   "int8", "--prompt",    "2048~0.8", "--output",       "500",
                "--rate",       "20",    "--ttft-p95",  "1s",   "--tpot-p95",  "40ms",     "--accelerators", "v5e,h100",
                "--chips",      "1..64", "--objective", "cost", "--max-chips", "32",       "--forbid",       "pipeline",
                "--prefix-hit", "30%",   "--serve"},
               R"pb(
                 model { preset: "m" }
                 serving {
                   prompt_distribution { moments { mean_tokens: 2048 coefficient_of_variation: 0.8 } }
                   output_tokens: 500
                   requests_per_second: 20
                   precision { weights: DATA_TYPE_INT8 }
                   prefix_cache_hit_ratio: 0.3
                 }
                 accelerators { names: "v5e" names: "h100" min_chip_count: 1 max_chip_count: 64 }
                 objective: OBJECTIVE_MIN_COST
                 constraints {
                   slo {
                     ttft { p95_seconds: 1 }
                     tpot { p95_seconds: 0.04 }
                   }
                   max_chip_count: 32
                   forbidden_axes: PARALLELISM_AXIS_PIPELINE
                 })pb"},
           // Flags that both jobs have.
           Case{{"--model", "m", "--batch", "32", "--load-imbalance", "1.5", "--serve", "--slice", "h100:8"},
                R"pb(
                  model { preset: "m" }
                  serving { batch_size: 32 expert_load_imbalance_ratio: 1.5 }
                  slices { slices { accelerator: "h100" chip_count: 8 } })pb"},
           Case{{"--model", "m", "--batch", "32", "--load-imbalance", "1.5"},
                R"pb(
                  model { preset: "m" }
                  training { global_batch_size: 32 expert_load_imbalance_ratio: 1.5 })pb"},
           // How many proposals are asked for decides which plans are estimated, so --emit leaves it alone.
           Case{{"--model", "m", "--serve", "--concurrency", "64", "--emit", "vllm"},
                R"pb(
                  model { preset: "m" }
                  serving { concurrency: 64 }
                  render: RENDER_TARGET_VLLM)pb"},
       }) {
    ShardQuestion question;
    EXPECT_EQ(Asked(question, c.arguments, c.in), Request(c.request).DebugString());
  }
}

TEST(ShardFlagsTest, NameTheirFieldsInBothJobs) {
  ShardQuestion question;
  const ParsedFlags parsed(&question, {"--model", "m", "--serve"});
  EXPECT_EQ(parsed.flags().FlagFor("training.global_batch_size"), "--batch");
  EXPECT_EQ(parsed.flags().FlagFor("serving.batch_size"), "--batch");
  EXPECT_EQ(parsed.flags().ChangeAsFlag("serving.precision.kv_cache", "DATA_TYPE_FP8"), "--kv fp8");
  EXPECT_EQ(parsed.flags().ChangeAsFlag("constraints.slo.tpot.p95_seconds", "0.05"), "--tpot-p95 0.05");
}

// Milliseconds are meant more often than whole seconds: what was taken is said.
TEST(ShardFlagsTest, LatenciesWithoutAUnitSayHowTheyWereRead) {
  const std::pair<const char*, size_t> cases[] = {{"40", 1}, {"1", 1}, {"40ms", 0}, {"40s", 0}, {"0.05", 0}};
  for (const auto& [text, notes] : cases) {
    ShardQuestion question;
    const ParsedFlags parsed(&question, {"--model", "m", "--serve", "--tpot-p95", text});
    ASSERT_EQ(parsed.flags().notes().size(), notes) << text;
    if (notes == 0) continue;
    EXPECT_THAT(parsed.flags().notes()[0], HasSubstr(absl::StrCat("for milliseconds write ", text, "ms")));
  }
}

TEST(ShardFlagsTest, SayWhatCannotBeRead) {
  struct Wrong {
    std::vector<std::string> arguments;
    const char* problem;
    const char* in = "";
  };
  for (const Wrong& c : {
           Wrong{{}, "--model is missing"},
           Wrong{{"--model", "m", "--chips", "64"}, "--chips: needs --accelerators"},
           Wrong{{"--model", "m", "--slices-max", "2"}, "--slices-max: needs --accelerators"},
           Wrong{{"--model", "m", "--capacity", "-"}, "--capacity: ", "{\"pols\": []}"},
           Wrong{{"--model", "m", "--capacity", "no/such/file"}, "--capacity: cannot read the file"},
           Wrong{{"--model", "m", "--objective", "beauty"}, "--objective: "},
           Wrong{{"--model", "m", "--emit", "perl"}, "--emit: "},
           Wrong{{"--model", "m", "--fix", "rows=8"}, "--fix: no axis is called 'rows'"},
           Wrong{{"--model", "m", "--forbid", "rows"}, "--forbid: "},
           Wrong{{"--model", "m", "--accelerators", "v5e", "--chips", ".."}, "--chips: write 64..512"},
           Wrong{{"--model", "m", "--time-limit", "soon"}, "--time-limit: "},
           Wrong{{"--model", "m", "--rate", "20"}, "--rate describes a serving load: add --serve"},
           Wrong{{"--model", "m", "--tokens", "1T", "--prompt", "9", "--tpot-p95", "1s"},
                 "--prompt, --tpot-p95 describe a serving load: add --serve"},
           Wrong{{"--model", "m", "--serve", "--sequence", "4096"}, "--sequence is for training, not for --serve"},
           Wrong{{"--model", "m", "--rate", "2", "--tokens", "1T", "--optimizer-offload", "--mtbf", "9h", "--budget",
                  "2M", "--serve"},
                 "--tokens, --budget, --optimizer-offload, --mtbf are for training, not for --serve"},
           Wrong{{"--model", "m", "--serve", "--objective", "time-to-train"},
                 "--objective time-to-train is for training, not for --serve"},
           Wrong{{"--model", "m", "--serve", "--batch", "8", "--rate", "3"}, "--batch and --rate exclude each other"},
           Wrong{{"--model", "m", "--batch", "8", "--batch-tokens", "4M"},
                 "--batch-tokens and --batch exclude each other"},
       }) {
    ShardQuestion question;
    const ParsedFlags parsed(&question, c.arguments, c.in);
    ASSERT_EQ(parsed.problems().size(), 1u) << c.problem;
    EXPECT_THAT(parsed.problems()[0], HasSubstr(c.problem));
  }
}

TEST(ShardFlagsTest, ReadRangesOfChips) {
  struct Range {
    const char* text;
    int least;
    int most;
  };
  for (const Range& range : {Range{"64..512", 64, 512}, Range{"..512", 0, 512}, Range{"64..", 64, 0},
                             Range{"256", 256, 256}, Range{"1Ki..8Ki", 1024, 8192}}) {
    v1::AcceleratorRange read;
    EXPECT_TRUE(ReadChipRange(range.text, &read).ok()) << range.text;
    EXPECT_EQ(read.min_chip_count(), range.least) << range.text;
    EXPECT_EQ(read.max_chip_count(), range.most) << range.text;
  }
}

// ---- The table ----

constexpr char kReply[] = R"pb(
  proposals {
    pools { capacity_pool: "batch" zone: "us-east5-a" }
    training {
      outcome: OUTCOME_FEASIBLE
      slice {
        slice { accelerator: "tpu-v5p" topology: "4x4x8" }
        slice_count: 2
        total_chip_count: 256
      }
      chip_count: 256
      parallelism {
        ici { fsdp: 32 tensor: 4 }
        dcn { data: 2 }
      }
      step_time { expected_seconds: 2.5 }
      mfu_ratio: 0.5
      memory { used_bytes: 50 capacity_bytes: 100 }
      time_to_train_seconds: 864000
      wall_seconds: 950400
      cost { total_usd: 250000 usd_per_million_tokens: 0.25 }
    }
    beats_next_because: "0.1 s less network."
    renderings { target: RENDER_TARGET_JAX format: "python" text: "mesh = 1\n" }
  }
  proposals {
    training {
      outcome: OUTCOME_FEASIBLE
      slice {
        slice { accelerator: "tpu-v5e" topology: "16x16" }
        slice_count: 1
        total_chip_count: 256
      }
      chip_count: 256
      parallelism { ici { fsdp: 256 } }
      step_time { expected_seconds: 2.6 }
    }
  }
  frontier {
    slice {
      slice { accelerator: "tpu-v5p" topology: "4x4x8" }
      slice_count: 2
    }
    chip_count: 256
    expected_seconds: 2.5
    total_usd: 250000
  }
  frontier {
    slice {
      slice { accelerator: "tpu-v6e" topology: "4x4" }
      slice_count: 1
    }
    chip_count: 16
    expected_seconds: 25
    total_usd: 150000
  }
  near_misses {
    plan {
      slice {
        slice { accelerator: "tpu-v6e" topology: "8x8" }
        slice_count: 1
      }
      expected_seconds: 2
    }
    lacks { sentence: "3 GB too much." }
    smallest_fix {
      sentence: "Recompute everything."
      changes { field: "training.remat_policy" value: "REMAT_POLICY_FULL" }
    }
  }
  closed_forms { name: "fsdp and tensor split" sentence: "Tensor 3.6; found is 4." }
  search {
    considered_count: 1541
    evaluated_count: 93
    pruned { reason: "NETWORK_FLOOR" count: 1328 }
    pruned { reason: "OUT_OF_MEMORY" count: 120 }
    elapsed_seconds: 0.008
    exhaustive: true
    candidate_slice_count: 12
  }
)pb";

std::string Table(ShardQuestion& question, const std::string& reply, std::vector<std::string> arguments) {
  const ParsedFlags parsed(&question, std::move(arguments));
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      reply, static_cast<v1::ProposeShardingResponse*>(question.response())));
  std::ostringstream out;
  Report report(&out, Style());
  question.Print(parsed.flags(), report);
  return out.str();
}

TEST(ShardReportTest, ShowsWhatAPersonNeeds) {
  ShardQuestion question;
  const std::string table = Table(question, kReply, {"--model", "llama-3-8b"});
  for (const char* text :
       {"Training llama-3-8b: the best of 12 slices, shortest step first", "batch", "us-east5-a",
        "fsdp=32,tp=4,dcn.dp=2", "2 x tpu-v5p 4x4x8", "11.0 days", "$250k", "50%", "2.50 s", "Why in this order",
        "1 before 2: 0.1 s less network.", "Faster or cheaper", "tpu-v6e 4x4", "Nearly",
        "3 GB too much. Fix: Recompute everything. [--remat full]", "fsdp and tensor split: Tensor 3.6", "--emit"}) {
    EXPECT_THAT(table, HasSubstr(text));
  }
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kMaxColumns) << line;
  std::string joined;
  for (const char c : table) joined += c == '\n' ? ' ' : c;
  EXPECT_THAT(joined, HasSubstr("1,541 plans of 12 slices: 93 evaluated, 1,448 left out (network floor 1,328, out of"));
  EXPECT_THAT(joined, HasSubstr("proven best."));
}

constexpr char kServingReply[] = R"pb(
  proposals {
    pools {
      role: POOL_ROLE_PREFILL
      slice {
        slice { accelerator: "tpu-v6e" topology: "2x4" }
        slice_count: 1
      }
      parallelism { ici { tensor: 8 } }
      replica_count: 11
    }
    pools {
      role: POOL_ROLE_DECODE
      slice {
        slice { accelerator: "nvidia-h100-sxm" topology: "8" }
        slice_count: 1
      }
      parallelism { ici { data: 2 tensor: 4 } }
      replica_count: 2
    }
    serving {
      outcome: OUTCOME_FEASIBLE
      chip_count: 104
      ttft { p95_seconds: 0.85 }
      tpot { p95_seconds: 0.0162 }
      throughput { output_tokens_per_second: 9984 output_tokens_per_second_per_chip: 96 }
      cost { usd_per_million_output_tokens: 1.25 usd_per_hour: 312.5 }
      workload { prompt_tokens: 2048 output_tokens: 500 requests_per_second: 20 }
    }
    beats_next_because: "$12 less an hour."
    renderings { target: RENDER_TARGET_VLLM format: "shell" text: "vllm serve m\n" }
  }
  proposals {
    pools {
      role: POOL_ROLE_BOTH
      slice {
        slice { accelerator: "tpu-v5e" topology: "4x4" }
        slice_count: 1
      }
      parallelism {
        ici { data: 16 tensor: 32 context: 2 }
        dcn { data: 2 }
      }
      replica_count: 7
    }
    serving { outcome: OUTCOME_FEASIBLE chip_count: 112 }
  }
  frontier {
    slice {
      slice { accelerator: "tpu-v6e" topology: "2x4" }
      slice_count: 1
    }
    parallelism { ici { tensor: 8 } }
    replica_count: 8
    chip_count: 64
    expected_seconds: 0.019
    tokens_per_second_per_chip: 156
    usd_per_million_tokens: 4.75
  }
  frontier {
    slice {
      slice { accelerator: "tpu-v5e" topology: "4x8" }
      slice_count: 1
    }
    replica_count: 2
    chip_count: 64
    expected_seconds: 0.039
    tokens_per_second_per_chip: 155
    usd_per_million_tokens: 2.25
  }
  near_misses {
    plan {
      slice {
        slice { accelerator: "tpu-v5e" topology: "2x2" }
        slice_count: 1
      }
      expected_seconds: 0.055
    }
    lacks { sentence: "3 GB too much." }
    smallest_fix {
      sentence: "Cache in fp8 on 8 chips."
      changes { field: "serving.precision.kv_cache" value: "DATA_TYPE_FP8" }
      changes { field: "slice.chip_count" value: "8" }
    }
  }
  search {
    considered_count: 378
    evaluated_count: 10
    pruned { reason: "COMPUTE_FLOOR" count: 321 }
    pruned { reason: "OUT_OF_MEMORY" count: 47 }
    elapsed_seconds: 0.75
    exhaustive: true
    candidate_slice_count: 21
  }
)pb";

TEST(ShardReportTest, ShowsWaysToServe) {
  ShardQuestion question;
  const std::string table =
      Table(question, kServingReply, {"--model", "llama-3-70b", "--serve", "--rate", "20", "--objective", "cost"});
  for (const char* text :
       {"Serving llama-3-70b: the best of 21 slices, cheapest per hour first\n", "1 before 2: $12 less an hour.",
        "2,048 tokens in, 500 out, 20.0 requests/s", "vllm: --emit NAME prints one",
        "Faster or cheaper: no other plan is both", "the bill per million is all of it",
        "tpu-v5e 2x2, dp=1, a token every 55.0 ms: 3 GB too much. Fix: Cache in fp8 on 8 chips. [--kv"}) {
    EXPECT_THAT(table, HasSubstr(text));
  }
  EXPECT_THAT(table, Not(HasSubstr("chip_count")));
  EXPECT_THAT(table, ContainsRegex("TTFT +TPOT +tok/s +\\$ per +\\$ per\n +slice +plan +replicas +chips +p95"));
  // Two pools are two rows, and what they do together stands once.
  EXPECT_THAT(table, ContainsRegex("1 +tpu-v6e 2x4 +tp=8 +11 prefill +104 +850 ms +16.2 ms +96 +\\$1.25 +\\$312"));
  EXPECT_THAT(table, ContainsRegex("\n +nvidia-h100-sxm 8 +dp=2,tp=4 +2 decode\n"));
  EXPECT_THAT(table, ContainsRegex("2 +tpu-v5e 4x4 +dp=16,tp=32, +7 +112"));
  EXPECT_THAT(table, ContainsRegex("\n +cp=2,\n +dcn.dp=2\n"));
  EXPECT_THAT(table, ContainsRegex("tpu-v6e 2x4 +tp=8 +8 +64 +19.0 ms +156 +\\$4.75"));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kMaxColumns) << line;
  std::string joined;
  for (const char c : table) joined += c == '\n' ? ' ' : c;
  EXPECT_THAT(joined, HasSubstr("378 plans of 21 slices: 10 estimated in full, 368 left out (worse in the mean 321, "));
  EXPECT_THAT(joined, HasSubstr("every plan looked at."));
}

TEST(ShardReportTest, SaysThatNothingServes) {
  ShardQuestion question;
  const std::string table = Table(question,
                                  R"pb(
                                    search { candidate_slice_count: 3 exhaustive: true }
                                    near_misses {
                                      plan { outcome: OUTCOME_OUT_OF_MEMORY }
                                      lacks { sentence: "1 GB too much." }
                                    }
                                    near_misses {
                                      plan {
                                        outcome: OUTCOME_MISSES_SLO
                                        slice { slice { accelerator: "tpu-v5e" topology: "4x4" } }
                                      }
                                      lacks { sentence: "The p95 TPOT of 3 ms is 3 times the target of 1 ms." }
                                    }
                                  )pb",
                                  {"--model", "m", "--serve", "--tpot-p95", "1ms"});
  EXPECT_THAT(table, HasSubstr("NO PLAN  serving m: nothing meets what was asked on 3 slices\n"));
  EXPECT_THAT(table, HasSubstr("The nearest, tpu-v5e 4x4: The p95 TPOT of 3 ms is 3 times the target of 1 ms."));
  ShardQuestion large;
  EXPECT_THAT(Table(large, "search { candidate_slice_count: 3 exhaustive: true }", {"--model", "m", "--serve"}),
              HasSubstr("NO PLAN  serving m: nothing fits on 3 slices\n"));
}

TEST(ShardReportTest, EmitsTheCommandThatServes) {
  ShardQuestion question;
  Table(question, kServingReply, {"--model", "m", "--serve", "--emit", "vllm"});
  EXPECT_EQ(question.Missing().code(), 0);
  EXPECT_EQ(question.Verbatim(), "vllm serve m\n");
}

TEST(ShardReportTest, ShowsWhatPlansKeepOnTheHost) {
  ShardQuestion question;
  const std::string table = Table(question,
                                  R"pb(
                                    proposals { training { workload { optimizer_offload: true } } }
                                    proposals { training { workload {} } }
                                    near_misses { plan { optimizer_offload: true activation_offload: true } }
                                  )pb",
                                  {"--model", "m", "--allow-offload"});
  EXPECT_THAT(table, HasSubstr("on host"));
  EXPECT_THAT(table, HasSubstr("optimizer"));
  EXPECT_THAT(table, HasSubstr("on host: optimizer, activations"));
  ShardQuestion plain;
  EXPECT_THAT(Table(plain, kReply, {"--model", "m"}), Not(HasSubstr("on host")));
}

TEST(ShardReportTest, SaysThatNothingFits) {
  ShardQuestion question;
  const std::string table = Table(question, "search { candidate_slice_count: 1 exhaustive: true }", {"--model", "m"});
  EXPECT_THAT(table, HasSubstr("NO PLAN  training m: nothing fits on 1 slice\n"));
  EXPECT_THAT(table, Not(HasSubstr("Nearly")));
  ShardQuestion cut;
  const std::string early =
      Table(cut, "search { candidate_slice_count: 1 optimality_gap_ratio: 0.02 }", {"--model", "m"});
  EXPECT_THAT(early, HasSubstr("NO PLAN  training m: none found in time on 1 slice\n"));
  EXPECT_THAT(early, HasSubstr("another plan could be up to 2.0% better"));
}

TEST(ShardReportTest, EmitsOneTextAlone) {
  ShardQuestion question;
  Table(question, kReply, {"--model", "m", "--emit", "jax"});
  EXPECT_EQ(question.Missing().code(), 0);
  EXPECT_EQ(question.Verbatim(), "mesh = 1\n");
}

TEST(ShardReportTest, SaysWhatCannotBeEmitted) {
  ShardQuestion unwritten;
  Table(unwritten,
        R"pb(proposals {}
             warnings { code: "NOT_RENDERED" sentence: "vLLM: serves only." })pb",
        {"--model", "m", "--emit", "vllm"});
  EXPECT_EQ(unwritten.Missing().message(), "vLLM: serves only.");
  EXPECT_THAT(unwritten.Verbatim(), IsEmpty());
  ShardQuestion infeasible;
  Table(infeasible, "", {"--model", "m", "--emit", "jax"});
  EXPECT_THAT(infeasible.Missing().message(), HasSubstr("No plan is feasible"));
}

}  // namespace
}  // namespace sliceplan::cli
