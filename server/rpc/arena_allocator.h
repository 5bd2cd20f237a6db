// Request and reply of one call in one arena: a reply of hundreds of small messages is freed at once.
#ifndef SLICEPLAN_SERVER_RPC_ARENA_ALLOCATOR_H_
#define SLICEPLAN_SERVER_RPC_ARENA_ALLOCATOR_H_

#include "google/protobuf/arena.h"
#include "grpcpp/support/message_allocator.h"

namespace sliceplan::rpc {

template <typename Request, typename Response>
class ArenaAllocator : public grpc::MessageAllocator<Request, Response> {
 public:
  grpc::MessageHolder<Request, Response>* AllocateMessages() override { return new Holder; }

 private:
  // Holds most requests and replies without another allocation.
  static constexpr size_t kFirstBlockBytes = 12 << 10;

  class Holder : public grpc::MessageHolder<Request, Response> {
   public:
    Holder() : arena_(Options(block_)) {
      this->set_request(google::protobuf::Arena::CreateMessage<Request>(&arena_));
      this->set_response(google::protobuf::Arena::CreateMessage<Response>(&arena_));
    }
    void Release() override { delete this; }

   private:
    static google::protobuf::ArenaOptions Options(char* block) {
      google::protobuf::ArenaOptions options;
      options.initial_block = block;
      options.initial_block_size = kFirstBlockBytes;
      return options;
    }

    alignas(8) char block_[kFirstBlockBytes];
    google::protobuf::Arena arena_;
  };
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_ARENA_ALLOCATOR_H_
