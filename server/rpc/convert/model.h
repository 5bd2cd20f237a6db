// From any description of a model to the parsed model.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_MODEL_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_MODEL_H_

#include <string>

#include "proto/sliceplan/v1/estimate.pb.h"
#include "proto/sliceplan/v1/model.pb.h"
#include "server/catalog/catalog.h"
#include "server/rpc/field_path.h"
#include "server/rpc/model_cache.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

// Presets, config texts and architectures alike are remembered by their text. nullptr with violations under `path` when
// there is no such model.
ModelHandle ToModel(const v1::ModelSpec& spec, const catalog::Catalog& catalog, ModelCache& cache,
                    const FieldPath& path, Violations& violations);

// Whether ToModel has nothing to read: the model is remembered, or is small.
bool IsQuicklyRead(const v1::ModelSpec& spec, const ModelCache& cache);

// The preset's name, the architecture's, or the config's family.
std::string ModelName(const v1::ModelSpec& spec, const catalog::Catalog& catalog, const ParsedModel& model);

// One warning of the contract for each of the import.
void AddImportWarnings(const ParsedModel& model, google::protobuf::RepeatedPtrField<v1::Warning>* warnings);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_MODEL_H_
