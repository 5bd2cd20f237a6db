// sliceplan catalog accelerators|slices|prices|models: the lists of CatalogService.
#ifndef SLICEPLAN_CLIENT_CLI_CATALOG_H_
#define SLICEPLAN_CLIENT_CLI_CATALOG_H_

#include <memory>

#include "client/cli/question.h"

namespace sliceplan::cli {

std::unique_ptr<Question> MakeListAcceleratorsQuestion();
std::unique_ptr<Question> MakeListSlicesQuestion();
std::unique_ptr<Question> MakeListPricesQuestion();
std::unique_ptr<Question> MakeListModelsQuestion();

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_CATALOG_H_
