#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/backend.h"
#include "server/rpc/call_context.h"
// Brings the catalog's store along, which the engine of the handlers stands on.
#include "server/rpc/handlers/engine.h"
#include "server/rpc/handlers/register.h"
#include "server/rpc/method_table.h"

namespace sliceplan::cli {
namespace {

class LocalBackend : public Backend {
 public:
  LocalBackend(std::unique_ptr<catalog::CatalogStore> store, const std::optional<absl::Duration>& timeout)
      : store_(std::move(store)), engine_(store_.get()), methods_(rpc::MakeMethodTable(&engine_)), timeout_(timeout) {}

  google::rpc::Status Call(const std::string& method, const google::protobuf::Message& request,
                           google::protobuf::Message* response) override {
    const rpc::Method* const found = methods_.Find(method);
    if (found == nullptr) {
      google::rpc::Status status;
      status.set_code(static_cast<int>(absl::StatusCode::kUnimplemented));
      status.set_message(absl::StrCat("There is no method ", method, "."));
      return status;
    }
    rpc::CallContext call;
    if (timeout_.has_value()) call.deadline = absl::Now() + *timeout_;
    const rpc::Result result = found->handle(request, response, call);
    return result.ok() ? google::rpc::Status() : result.status();
  }

 private:
  const std::unique_ptr<catalog::CatalogStore> store_;
  rpc::Engine engine_;
  const rpc::MethodTable methods_;
  const std::optional<absl::Duration> timeout_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeLocalBackend(const BackendOptions& options) {
  auto store = catalog::CatalogStore::Create(options.catalog_dir);
  if (!store.ok()) return store.status();
  return std::make_unique<LocalBackend>(*std::move(store), options.timeout);
}

}  // namespace sliceplan::cli
