// The service's answers to the questions of cases: the handlers that a server has, in this process.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_PREDICTOR_H_
#define SLICEPLAN_CLIENT_CALIBRATE_PREDICTOR_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/calibrate/case.h"
#include "server/rpc/handlers/engine.h"
#include "server/rpc/method_table.h"

namespace sliceplan::calibrate {

// One measured figure and what the service says of it.
struct Prediction {
  Metric metric = Metric::kStepSeconds;
  double measured = 0;
  double expected = 0;
  // 90% interval; both 0 where the reply has none.
  double low = 0;
  double high = 0;
};

struct Answer {
  std::vector<Prediction> predictions;  // in the order of `Case::measured`
  std::string profile;                  // that the service used
  // Why a figure has no prediction: the status of the call, or the outcome of a plan that does not run.
  std::string failure;
  // The reply says that the job does not run (it did); predictions are there all the same.
  std::string outcome;
};

class Predictor {
 public:
  // `catalog_dir` overlays the built-in catalog; empty for none.
  static absl::StatusOr<std::unique_ptr<Predictor>> Create(const std::string& catalog_dir);

  Answer Predict(const Case& asked) const;
  // One answer per case, in their order; asked on as many threads as the machine has processors.
  std::vector<Answer> PredictAll(const std::vector<const Case*>& cases) const;

  const catalog::Catalog& catalog() const { return *catalog_; }
  // From now on `record` stands in for the catalog's profile of the same name, which must exist.
  void Try(const catalog::v1::CalibrationProfile& record);
  // The profile that answers: the one tried last, or the catalog's, which must have it.
  const catalog::v1::CalibrationProfile& Profile(const std::string& name) const;

 private:
  explicit Predictor(std::unique_ptr<catalog::CatalogStore> store);

  const std::unique_ptr<catalog::CatalogStore> store_;
  const std::shared_ptr<const catalog::Catalog> catalog_;
  rpc::Engine engine_;
  const rpc::MethodTable methods_;
  std::map<std::string, catalog::v1::CalibrationProfile> tried_;
};

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_PREDICTOR_H_
