// Parts of replies that several questions share, as text.
#ifndef SLICEPLAN_CLIENT_CLI_ESTIMATE_TEXT_H_
#define SLICEPLAN_CLIENT_CLI_ESTIMATE_TEXT_H_

#include <cstdint>
#include <string>

#include "client/cli/flags.h"
#include "client/cli/report.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "proto/sliceplan/v1/estimate.pb.h"
#include "proto/sliceplan/v1/hardware.pb.h"
#include "proto/sliceplan/v1/parallelism.pb.h"
#include "proto/sliceplan/v1/pricing.pb.h"

namespace sliceplan::cli {

// "matrix unit", "ICI".
std::string ResourceText(v1::Resource resource);
// "feed forward".
std::string ComponentText(v1::Component component);
// "OUT OF MEMORY".
std::string OutcomeText(v1::Outcome outcome);
// "2 x tpu-v5p 16x16x16 (8,192 chips)".
std::string SliceText(const v1::SliceUsed& slice);
// "fsdp 512 x context 2 x tensor 4"; "1 chip" without any degree above 1.
std::string DegreesText(const v1::AxisDegrees& degrees);
// "fsdp=512,tp=4,dcn.dp=2": as --parallelism reads it.
std::string PlanFlag(const v1::Parallelism& plan);
// "tensor on axis 2 x4; data on DCN x2".
std::string MappingText(const google::protobuf::RepeatedPtrField<v1::AxisPlacement>& mapping);
// "60.0 GiB of 95.0 GiB per chip (63.2%)".
std::string MemoryText(int64_t used_bytes, int64_t capacity_bytes);
// "gcp us-east5, on demand, 2026-08-22".
std::string PriceText(const v1::Price& price);

// Changes of a request as flags, those of one flag together: "--parallelism fsdp=8,tensor=4, --remat full".
std::string ChangesText(const google::protobuf::RepeatedPtrField<v1::FieldChange>& changes, const Flags& flags);

// Rows "missing" and "fix".
void PrintShortfall(const v1::Shortfall& shortfall, Report& report);
void PrintFix(const v1::Fix& fix, const Flags& flags, Report& report);

// Sections "Worth trying", "Assumed" and "Warnings"; nothing for empty lists.
void PrintAdvice(const google::protobuf::RepeatedPtrField<v1::Advice>& advice, const Flags& flags, Report& report);
void PrintAssumptions(const google::protobuf::RepeatedPtrField<v1::Assumption>& assumptions, const Flags& flags,
                      Report& report);
void PrintWarnings(const google::protobuf::RepeatedPtrField<v1::Warning>& warnings, const Flags& flags, Report& report);
// The closing line: who says all this.
void PrintVersions(const std::string& engine_version, const std::string& catalog_version, Report& report);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_ESTIMATE_TEXT_H_
