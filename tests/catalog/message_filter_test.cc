#include "server/catalog/message_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "google/protobuf/text_format.h"
#include "proto/sliceplan/catalog/v1/catalog.pb.h"

namespace sliceplan::catalog {
namespace {

using testing::HasSubstr;

v1::AcceleratorRecord Record() {
  v1::AcceleratorRecord record;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        id: "tpu-v5p"
        kind: ACCELERATOR_KIND_TPU
        aliases: [ "v5p", "TPU v5" ]
        interconnect { twisted_torus { available: false } }
        figures { field: "hbm_bytes" value: 100 chosen: true }
        figures { field: "mxu_dim" }
        hosts { machine_type: "ct5p" chip_count: 4 memory_gib: 448 }
      )pb",
      &record));
  return record;
}

struct MatchCase {
  const char* text;
  bool matches;
};

class MessageFilterTest : public testing::TestWithParam<MatchCase> {};

TEST_P(MessageFilterTest, Matches) {
  const absl::StatusOr<Filter> filter = Filter::Parse(GetParam().text);
  ASSERT_TRUE(filter.ok()) << filter.status();
  ASSERT_TRUE(CheckFilter(*filter, *v1::AcceleratorRecord::descriptor()).ok())
      << CheckFilter(*filter, *v1::AcceleratorRecord::descriptor());
  EXPECT_EQ(MatchesFilter(*filter, Record()), GetParam().matches);
}

INSTANTIATE_TEST_SUITE_P(Texts, MessageFilterTest,
                         testing::Values(MatchCase{"id=\"tpu-v5p\"", true},
                                         MatchCase{"kind=ACCELERATOR_KIND_TPU", true}, MatchCase{"kind=TPU", true},
                                         MatchCase{"kind!=tpu", false}, MatchCase{"kind=GPU", false},
                                         MatchCase{"aliases:v5", true}, MatchCase{"aliases=\"TPU v5\"", true},
                                         MatchCase{"interconnect.twisted_torus.available=false", true},
                                         MatchCase{"interconnect.twistedTorus.available:*", true},
                                         MatchCase{"matmul_dtypes.native:*", false},
                                         MatchCase{"figures.value>=100", true}, MatchCase{"figures.value<100", false},
                                         MatchCase{"figures.chosen=true", true}, MatchCase{"hosts.chip_count=4", true},
                                         MatchCase{"hosts.memoryGib>447.5", true},
                                         MatchCase{"hosts.vcpu_count:*", false}, MatchCase{"hosts.vcpu_count!=3", true},
                                         MatchCase{"notes:*", false}));

TEST(CheckFilterTest, NamesWhatTheMessageLacks) {
  const auto check = [](absl::string_view text) {
    return std::string(CheckFilter(*Filter::Parse(text), *v1::AcceleratorRecord::descriptor()).message());
  };
  EXPECT_THAT(check("vendr=google"), HasSubstr("there is no field \"vendr\"; did you mean \"vendor\""));
  EXPECT_THAT(check("hosts.chips=4"), HasSubstr("there is no field \"chips\""));
  EXPECT_THAT(check("interconnect=x"), HasSubstr("has fields of its own"));
  EXPECT_THAT(check("id.x=1"), HasSubstr("id has no fields"));
  EXPECT_THAT(check("id.=1"), HasSubstr("there is no"));
  EXPECT_THAT(check("figures.value=big"), HasSubstr("is a number"));
  EXPECT_THAT(check("kind=NOPE"), HasSubstr("kind is one of TPU, GPU"));
  EXPECT_EQ(check("kind=tpu OR kind!=ACCELERATOR_KIND_GPU OR kind=T* OR kind:p"), "");
}

}  // namespace
}  // namespace sliceplan::catalog
