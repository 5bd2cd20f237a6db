// Words of serving tables as fields of the API: formats, engines, remarks.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_SERVING_WORDS_H_
#define SLICEPLAN_CLIENT_CALIBRATE_SERVING_WORDS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/calibrate/case.h"
#include "client/calibrate/table.h"
#include "proto/sliceplan/v1/data_type.pb.h"
#include "proto/sliceplan/v1/serving.pb.h"
#include "server/catalog/catalog.h"

namespace sliceplan::calibrate {

// "bf16", "fp8", "nvfp4", "int4": DATA_TYPE_UNSPECIFIED for other words.
v1::DataType DataTypeNamed(absl::string_view word);
std::vector<absl::string_view> DataTypeWords();

// Profile of the engine that a table names, "vllm-gpu"; empty (the accelerator's default) for engines that none is for.
std::string ProfileOf(absl::string_view framework, absl::string_view accelerator);

// The number that follows `words` in a remark ("max_num_seqs 135"); absent when there is none.
std::optional<double> NumberAfter(absl::string_view remark, absl::string_view words);

// Lengths drawn evenly between `least_ratio` x nominal and nominal: their mean and spread.
v1::TokenDistribution DrawnLengths(double nominal_tokens, double least_ratio);

// The id of a chip that the catalog knows, else the name.
std::string ChipOf(absl::string_view name, const catalog::Catalog& catalog);

// The question without its plan: degrees and pools give way to the number of chips.
std::string JobOf(v1::EstimateServingRequest request);

// "mlp" of "mlp-12".
std::string SourceOf(absl::string_view id);

// Lists the row among those that ask no question.
void AddUnmapped(const Row& row, absl::string_view source, std::string reason, CaseTable& table);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_SERVING_WORDS_H_
