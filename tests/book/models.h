// The book's dense models in its letters: L layers, D hidden, F feed-forward, N and K heads of H, V words.
#ifndef SLICEPLAN_TESTS_BOOK_MODELS_H_
#define SLICEPLAN_TESTS_BOOK_MODELS_H_

#include "server/hardware/data_type.h"
#include "server/transformer/architecture.h"
#include "server/transformer/operations.h"
#include "tests/book/book_case.h"

namespace sliceplan::book {

// Gated MLP and two norms a layer. Letters that a case leaves out are 1 (F: `ffw_multiplier` x D, N and K: KH or NH
// over H).
transformer::Architecture ModelOf(const Json& given);
transformer::ModelOperations OperationsOfModel(const Json& given);

// Of the whole model, norms included.
double TotalParameters(const Json& given);
// {"ffw", "attention", "vocab", "total"}: matrices of the parts, and all of it.
Json ParametersByComponent(const Json& given);

// Cache bytes of one sequence.
double CacheBytes(const Json& given, int64_t context, hardware::DataType type);

}  // namespace sliceplan::book

#endif  // SLICEPLAN_TESTS_BOOK_MODELS_H_
