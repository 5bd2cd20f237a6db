// Memory of replies that nobody reads.
#include "server/rpc/unread_replies.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sliceplan::rpc {
namespace {

TEST(UnreadRepliesTest, EverybodyHasRoomBelowTheLimit) {
  UnreadReplies replies(100);
  const UnreadReplies::Receipt most = replies.Add("a", 99);
  EXPECT_TRUE(replies.HasRoom("a"));
  EXPECT_TRUE(replies.HasRoom("b"));
  EXPECT_EQ(replies.bytes(), 99);
}

TEST(UnreadRepliesTest, BeyondItThoseWithMoreThanALittleAreRefused) {
  constexpr int64_t kLittle = UnreadReplies::kLittleBytes;
  UnreadReplies replies(10 * kLittle);
  const UnreadReplies::Receipt large = replies.Add("large", 9 * kLittle);
  const UnreadReplies::Receipt even = replies.Add("even", kLittle);
  const UnreadReplies::Receipt small = replies.Add("small", kLittle - 1);
  EXPECT_FALSE(replies.HasRoom("large"));
  EXPECT_FALSE(replies.HasRoom("even"));
  EXPECT_TRUE(replies.HasRoom("small"));
  EXPECT_TRUE(replies.HasRoom("new"));
}

TEST(UnreadRepliesTest, ReceiptsGiveBackOnce) {
  constexpr int64_t kLarge = 2 * UnreadReplies::kLittleBytes;
  UnreadReplies replies(kLarge + 1);
  UnreadReplies::Receipt first = replies.Add("a", kLarge);
  UnreadReplies::Receipt second = replies.Add("a", 50);
  EXPECT_FALSE(replies.HasRoom("a"));
  UnreadReplies::Receipt moved = std::move(first);
  EXPECT_EQ(replies.bytes(), kLarge + 50);
  second = std::move(moved);  // the 50 are given back
  EXPECT_EQ(replies.bytes(), kLarge);
  EXPECT_TRUE(replies.HasRoom("a"));
  second = UnreadReplies::Receipt();
  EXPECT_EQ(replies.bytes(), 0);
}

// Whoever comes, all together hold at most the limit, and each a little and a reply.
TEST(UnreadRepliesTest, TheSumIsBounded) {
  constexpr int64_t kReply = 30'000;
  constexpr int64_t kLimit = 100 * kReply;
  constexpr int kConnections = 20;
  UnreadReplies replies(kLimit);
  std::vector<UnreadReplies::Receipt> held;
  for (int call = 0; call < 1000; ++call) {
    const std::string connection = absl::StrCat("c", call % kConnections);
    if (replies.HasRoom(connection)) held.push_back(replies.Add(connection, kReply));
  }
  EXPECT_GE(replies.bytes(), kLimit);
  EXPECT_LE(replies.bytes(), kLimit + kConnections * (UnreadReplies::kLittleBytes + kReply));
}

}  // namespace
}  // namespace sliceplan::rpc
