#include "server/rpc/reply_digest.h"

#include <algorithm>
#include <memory>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "proto/sliceplan/v1/sharding.pb.h"

namespace sliceplan::rpc {
namespace {

std::string InOrder(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

}  // namespace

std::string DeterministicBytes(const google::protobuf::Message& reply) {
  if (reply.GetDescriptor() != v1::ProposeShardingResponse::descriptor()) return InOrder(reply);
  v1::ProposeShardingResponse timeless(static_cast<const v1::ProposeShardingResponse&>(reply));
  timeless.mutable_search()->clear_elapsed_seconds();
  return InOrder(timeless);
}

std::string DeterministicBytes(const google::rpc::Status& error) {
  google::rpc::Status sorted(error);
  std::sort(sorted.mutable_details()->begin(), sorted.mutable_details()->end(),
            [](const auto& a, const auto& b) { return a.type_url() < b.type_url(); });
  return InOrder(sorted);
}

bool IsRepeatable(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented: return true;
    default: return false;
  }
}

}  // namespace sliceplan::rpc
