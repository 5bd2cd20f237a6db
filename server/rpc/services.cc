#include "server/rpc/services.h"

#include "proto/sliceplan/v1/analysis_service.grpc.pb.h"
#include "proto/sliceplan/v1/catalog_service.grpc.pb.h"
#include "proto/sliceplan/v1/planner_service.grpc.pb.h"
#include "server/rpc/arena_allocator.h"
#include "server/rpc/grpc_call.h"

namespace sliceplan::rpc {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

// Overrides one method of a generated service, with messages in an arena.
#define SLICEPLAN_METHOD(Service, Name)                                                      \
 public:                                                                                     \
  ServerUnaryReactor* Name(CallbackServerContext* context, const v1::Name##Request* request, \
                           v1::Name##Response* response) override {                          \
    return AnswerOverGrpc(dispatcher_, Name##_method_, context, request, response);          \
  }                                                                                          \
                                                                                             \
 private:                                                                                    \
  const Method& Name##_method_ = *table_.Find("sliceplan.v1." #Service "/" #Name);           \
  ArenaAllocator<v1::Name##Request, v1::Name##Response> Name##_allocator_;                   \
  const bool Name##_uses_arena_ = (SetMessageAllocatorFor_##Name(&Name##_allocator_), true)

// Members that the macro's members need first.
class Wiring {
 public:
  Wiring(const MethodTable& methods, const Dispatcher& dispatcher) : table_(methods), dispatcher_(dispatcher) {}

 protected:
  const MethodTable& table_;
  const Dispatcher& dispatcher_;
};

class PlannerService final : public v1::PlannerService::CallbackService, private Wiring {
 public:
  using Wiring::Wiring;
  SLICEPLAN_METHOD(PlannerService, EstimateTraining);
  SLICEPLAN_METHOD(PlannerService, EstimateServing);
  SLICEPLAN_METHOD(PlannerService, ProposeSharding);
};

class AnalysisService final : public v1::AnalysisService::CallbackService, private Wiring {
 public:
  using Wiring::Wiring;
  SLICEPLAN_METHOD(AnalysisService, DescribeModel);
  SLICEPLAN_METHOD(AnalysisService, AnalyzeOperation);
  SLICEPLAN_METHOD(AnalysisService, AnalyzeCollective);
  SLICEPLAN_METHOD(AnalysisService, CompareMeasurement);
};

class CatalogService final : public v1::CatalogService::CallbackService, private Wiring {
 public:
  using Wiring::Wiring;
  SLICEPLAN_METHOD(CatalogService, ListAccelerators);
  SLICEPLAN_METHOD(CatalogService, ListSlices);
  SLICEPLAN_METHOD(CatalogService, ListPrices);
  SLICEPLAN_METHOD(CatalogService, ListModels);
};

}  // namespace

std::vector<std::unique_ptr<grpc::Service>> MakeServices(const MethodTable& methods, const Dispatcher& dispatcher) {
  std::vector<std::unique_ptr<grpc::Service>> services;
  services.push_back(std::make_unique<PlannerService>(methods, dispatcher));
  services.push_back(std::make_unique<AnalysisService>(methods, dispatcher));
  services.push_back(std::make_unique<CatalogService>(methods, dispatcher));
  return services;
}

}  // namespace sliceplan::rpc
