#include "client/calibrate/inputs.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/calibrate/predictor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sliceplan::calibrate {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class InputsTest : public ::testing::Test {
 protected:
  InputsTest() : directory_(std::filesystem::path(::testing::TempDir()) / "calibrate_inputs") {
    std::filesystem::create_directories(directory_);
  }
  ~InputsTest() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& text) const {
    const std::string file = (directory_ / name).string();
    std::ofstream(file) << text;
    return file;
  }

  static const catalog::Catalog& BuiltIn() {
    static const std::unique_ptr<Predictor>* const predictor = new std::unique_ptr<Predictor>(*Predictor::Create(""));
    return (*predictor)->catalog();
  }

  // The faults of one row, by lines.
  std::vector<std::string> FaultsOf(MeasuredFiles files) const {
    const absl::StatusOr<CaseTable> read = ReadCases(files, BuiltIn());
    if (read.ok()) return {};
    return absl::StrSplit(read.status().message(), '\n');
  }

  const std::filesystem::path directory_;
};

struct WrongCell {
  const char* column;
  const char* cell;
  const char* message;  // after the column's name
};

constexpr WrongCell kTrainingCells[] = {
    {"accelerator", "tpu-v9z", "tpu-v9z"},
    {"ffn_gated", "yes", "\"yes\" is none of 0, 1"},
    {"sp_or_cp", "two", "\"two\" is neither a count nor SP=TP"},
    {"remat", "ful", "did you mean \"full\"?"},
    {"remat", "custom: out_prj offloaded", "did you mean \"out_proj\"?"},
    {"precision", "bf17", "did you mean \"bf16\""},
    {"optimizer", "foo", "\"foo\" is none of adam"},
    {"framework", "MaxTxt", "did you mean \"MaxText\"?"},
    {"layers", "many", "\"many\" is no number"},
    {"seq_len", "4096.5", "\"4096.5\" is no whole number"},
    {"chips", "-8", "\"-8\" is negative"},
    {"metric_step_time_s", "fast", "\"fast\" is no number"},
    {"notes", "profile=maxtext-tpus", "did you mean \"maxtext-tpu\"?"},
};
constexpr WrongCell kServingCells[] = {
    {"accelerator", "h200x", "h200x"},
    {"weight_dtype", "xyz", "\"xyz\" is none of bf16"},
    {"kv_dtype", "fp9", "did you mean \"fp8\""},
    {"attention_kind", "gqq", "did you mean \"gqa\""},
    {"framework", "vLM", "did you mean \"vLLM\"?"},
    {"phase", "decoed", "did you mean \"decode\"?"},
    {"tp", "x", "\"x\" is no number"},
    {"input_len", "long", "\"long\" is no number"},
};
constexpr WrongCell kEndToEndCells[] = {
    {"accelerator", "b201", "b201"},
    {"backend", "zzz", "\"zzz\" is none of trtllm, sglang, vllm"},
    {"mode", "banana", "\"banana\" is none of agg, disagg"},
    {"precision", "fp5", "\"fp5\" is none of"},
    {"model_path", "meta-llama/Llama-3.1-71B", "did you mean"},
    {"decode_moe_ep_size", "8.5", "\"8.5\" is no whole number"},
    {"silicon_tpot_ms", "-1", "\"-1\" is negative"},
};

TEST_F(InputsTest, ACellThatMakesNoSenseIsNamed) {
  const auto check = [&](absl::Span<const WrongCell> cells, std::vector<std::string> MeasuredFiles::*kind) {
    for (const WrongCell& c : cells) {
      SCOPED_TRACE(absl::StrCat(c.column, " ", c.cell));
      MeasuredFiles files;
      const std::string file = Write("wrong.csv", absl::StrCat("id,", c.column, "\n# a remark\nA-1,", c.cell, "\n"));
      (files.*kind) = {file};
      const std::vector<std::string> faults = FaultsOf(files);
      ASSERT_EQ(faults.size(), 1U);
      EXPECT_THAT(faults[0], StartsWith(absl::StrCat(file, ":3:", c.column, ": ")));
      EXPECT_THAT(faults[0], HasSubstr(c.message));
    }
  };
  check(kTrainingCells, &MeasuredFiles::training);
  check(kServingCells, &MeasuredFiles::serving);
  check(kEndToEndCells, &MeasuredFiles::end_to_end);
}

TEST_F(InputsTest, AllFaultsOfAllFilesAreReported) {
  const std::string training = Write("t.csv", "id,optimizer,precision\nA-1,foo,bf16\nA-2,adamw,bar\n");
  const std::string serving = Write("s.csv", "id,phase,kv_dtype\nB-1,x,y\n");
  const std::vector<std::string> faults = FaultsOf({{training}, {serving}, {}});
  ASSERT_EQ(faults.size(), 4U);
  EXPECT_THAT(faults[0], StartsWith(absl::StrCat(training, ":2:optimizer: ")));
  EXPECT_THAT(faults[1], StartsWith(absl::StrCat(training, ":3:precision: ")));
  EXPECT_THAT(faults[2], StartsWith(absl::StrCat(serving, ":2:kv_dtype: ")));
  EXPECT_THAT(faults[3], StartsWith(absl::StrCat(serving, ":2:phase: ")));
}

TEST_F(InputsTest, WhatIsKnownOrBlankPasses) {
  const std::string training = Write("t.csv",
                                     "id,accelerator,remat,optimizer,precision,framework,sp_or_cp,notes\n"
                                     "A-1,TPU v5p,\"custom: mlpwo+context offloaded\",FusedAdam (ZeRO-1),"
                                     "fp8 (delayed scaling),NeMo 24.09 (Megatron-Core),SP=TP,profile=maxtext-tpu\n"
                                     "A-2,,,,,,,\n");
  EXPECT_TRUE(ReadCases({{training}, {}, {}}, BuiltIn()).ok());
}

TEST_F(InputsTest, TwoRowsOfOneIdAreRefused) {
  constexpr char kRow[] = "A-1,tpu-v6e,llama-3-8b,8192,64,1,64,64,full,3\n";
  const std::string file =
      Write("t.csv", absl::StrCat("id,accelerator,model,seq_len,global_batch_seqs,microbatch,chips,fsdp,remat,"
                                  "metric_step_time_s\n",
                                  kRow, kRow));
  EXPECT_THAT(FaultsOf({{file}, {}, {}}), ::testing::ElementsAre("Two rows have the id A-1."));
}

TEST_F(InputsTest, WhereAFileCanBeWritten) {
  EXPECT_TRUE(CheckWritable("").ok());
  EXPECT_TRUE(CheckWritable((directory_ / "new.csv").string()).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_ / "new.csv"));
  EXPECT_THAT(std::string(CheckWritable((directory_ / "no" / "new.csv").string()).message()),
              HasSubstr("there is no directory"));
  EXPECT_THAT(std::string(CheckWritable(directory_.string()).message()), HasSubstr("is a directory"));
}

}  // namespace
}  // namespace sliceplan::calibrate
