// Statuses of gRPC as statuses of Abseil.
#include "client/sliceplan/status.h"

#include "absl/strings/cord.h"
#include "client/sliceplan/error_details.h"
#include "grpcpp/support/status.h"
#include "gtest/gtest.h"
#include "proto/google/rpc/error_details.pb.h"
#include "proto/google/rpc/status.pb.h"

namespace sliceplan {
namespace {

TEST(StatusTest, KeepsEveryCode) {
  // gRPC's codes (grpc.github.io/grpc/core/md_doc_statuscodes.html) have the numbers and names of google.rpc.Code, as
  // Abseil's have.
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status = FromGrpcStatus(grpc::Status(static_cast<grpc::StatusCode>(code), "why"));
    EXPECT_EQ(static_cast<int>(status.code()), code);
    EXPECT_EQ(status.message(), "why");
  }
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok());
}

TEST(StatusTest, KeepsDetailsThatItDoesNotKnow) {
  google::rpc::Status details;
  auto* const detail = details.add_details();
  detail->set_type_url("type.googleapis.com/google.rpc.Help");
  detail->set_value("bytes");
  const absl::Status status =
      FromGrpcStatus(grpc::Status(grpc::StatusCode::INTERNAL, "why", details.SerializeAsString()));
  EXPECT_EQ(status.GetPayload("type.googleapis.com/google.rpc.Help"), absl::Cord("bytes"));
}

TEST(StatusTest, IgnoresTrailersThatAreNoDetails) {
  const absl::Status status = FromGrpcStatus(grpc::Status(grpc::StatusCode::INTERNAL, "why", "\xff\xff\xff"));
  EXPECT_EQ(status, absl::InternalError("why"));
  EXPECT_TRUE(FieldViolations(status).empty());
  EXPECT_FALSE(GetErrorInfo(status).has_value());
}

TEST(StatusTest, ReadsWhatWasNotFound) {
  google::rpc::ResourceInfo info;
  info.set_resource_type("accelerator");
  info.set_resource_name("tpu-v5q");
  info.set_description("Near names: tpu-v5p.");
  absl::Status status = absl::NotFoundError("why");
  status.SetPayload(DetailUrl("google.rpc.ResourceInfo"), absl::Cord(info.SerializeAsString()));
  const std::optional<ResourceInfo> read = GetResourceInfo(status);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->type, "accelerator");
  EXPECT_EQ(read->name, "tpu-v5q");
  EXPECT_EQ(read->description, "Near names: tpu-v5p.");
}

TEST(StatusTest, PayloadsThatCannotBeReadAreNoDetails) {
  absl::Status status = absl::NotFoundError("why");
  status.SetPayload(DetailUrl("google.rpc.RetryInfo"), absl::Cord("\xff"));
  EXPECT_FALSE(GetRetryDelay(status).has_value());
}

}  // namespace
}  // namespace sliceplan
