#include "server/rpc/convert/catalog_items.h"

#include <optional>

#include "server/hardware/topology.h"
#include "server/rpc/convert/accelerator_spec.h"
#include "server/rpc/convert/enums.h"

namespace sliceplan::rpc {
namespace {

namespace records = catalog::v1;

constexpr EnumPair<v1::AcceleratorKind, records::AcceleratorKind> kKinds[] = {
    {v1::ACCELERATOR_KIND_TPU, records::ACCELERATOR_KIND_TPU},
    {v1::ACCELERATOR_KIND_GPU, records::ACCELERATOR_KIND_GPU},
};

constexpr EnumPair<v1::AvailabilityStatus, records::AvailabilityStatus> kStatuses[] = {
    {v1::AVAILABILITY_STATUS_GA, records::AVAILABILITY_STATUS_GA},
    {v1::AVAILABILITY_STATUS_GA_LIMITED, records::AVAILABILITY_STATUS_GA_LIMITED},
    {v1::AVAILABILITY_STATUS_ANNOUNCED, records::AVAILABILITY_STATUS_ANNOUNCED},
    {v1::AVAILABILITY_STATUS_LEGACY, records::AVAILABILITY_STATUS_LEGACY},
    {v1::AVAILABILITY_STATUS_INTERNAL, records::AVAILABILITY_STATUS_INTERNAL},
};

const char* FabricWords(records::FabricKind kind) {
  switch (kind) {
    case records::FABRIC_KIND_TORUS_2D: return "2d torus";
    case records::FABRIC_KIND_TORUS_3D: return "3d torus";
    case records::FABRIC_KIND_SWITCHED: return "switched";
    default: return "other";
  }
}

void ToProto(const records::Figure& figure, v1::AcceleratorFigure* proto) {
  proto->set_field(figure.field());
  proto->set_value(figure.value());
  proto->set_chosen(figure.chosen());
  proto->set_source(figure.source());
  proto->set_as_of(figure.as_of());
  proto->set_note(figure.note());
}

void ToProto(const records::Interconnect& interconnect, const records::SliceRule* rule,
             v1::AcceleratorInterconnect* proto) {
  proto->set_kind(FabricWords(interconnect.kind()));
  proto->set_pod_shape(interconnect.pod_shape());
  proto->set_max_slice_shape(interconnect.max_slice_shape());
  proto->set_wrap_rule(interconnect.wrap_rule_text());
  *proto->mutable_twisted_shapes() = interconnect.twisted_torus().supported_shapes();
  if (rule != nullptr) proto->set_shape_rule(rule->text());
  proto->set_source(interconnect.source());
  proto->set_as_of(interconnect.as_of());
}

void ToProto(const records::HostRecord& host, v1::AcceleratorHost* proto) {
  proto->set_machine_type(host.machine_type());
  if (host.has_chip_count()) proto->set_chip_count(host.chip_count());
  if (host.has_vcpu_count()) proto->set_vcpu_count(host.vcpu_count());
  if (host.has_memory_gib()) proto->set_memory_gib(host.memory_gib());
  if (host.has_network_bytes_per_second()) proto->set_network_bytes_per_second(host.network_bytes_per_second());
  *proto->mutable_regions() = host.regions();
  proto->set_source(host.source());
  proto->set_as_of(host.as_of());
}

std::optional<double> OwnRate(const hardware::AcceleratorSpec& spec, hardware::DataType type) {
  switch (type) {
    case hardware::DataType::kBf16:
    case hardware::DataType::kFp16: return spec.bf16_flops_per_second;
    case hardware::DataType::kFp32: return spec.fp32_flops_per_second;
    case hardware::DataType::kFp8: return spec.fp8_flops_per_second;
    case hardware::DataType::kFp4: return spec.fp4_flops_per_second;
    case hardware::DataType::kInt8: return spec.int8_ops_per_second;
    case hardware::DataType::kInt4: return spec.int4_ops_per_second;
  }
  return std::nullopt;
}

}  // namespace

void ToProto(const catalog::Accelerator& accelerator, v1::Accelerator* proto) {
  const records::AcceleratorRecord& record = accelerator.record;
  proto->set_id(record.id());
  *proto->mutable_aliases() = record.aliases();
  rpc::ToProto(accelerator.spec, proto->mutable_spec());
  proto->set_kind(rpc::ToProto(kKinds, record.kind()));
  proto->set_vendor(record.vendor());
  proto->set_status(rpc::ToProto(kStatuses, record.status()));
  for (const records::Figure& figure : record.figures()) {
    // A figure without a value says that none is public.
    if (figure.has_value()) ToProto(figure, proto->add_figures());
  }
  ToProto(record.interconnect(), accelerator.slice_rule, proto->mutable_interconnect());
  for (const records::HostRecord& host : record.hosts()) ToProto(host, proto->add_hosts());
  *proto->mutable_matmul_dtypes() = record.matmul_dtypes().native();
  proto->set_matmul_dtypes_source(record.matmul_dtypes().source());
  for (const auto& pair : kDataTypes) {
    if (OwnRate(accelerator.spec, pair.engine).has_value()) proto->add_compute_dtypes(pair.proto);
  }
  proto->set_default_training_profile(record.default_training_profile());
  proto->set_default_serving_profile(record.default_serving_profile());
  *proto->mutable_notes() = record.notes();
  proto->set_source(record.source());
  proto->set_as_of(record.as_of());
}

void ToProto(const records::ModelRecord& record, const ParsedModel* model, v1::ModelPreset* proto) {
  proto->set_name(record.preset());
  *proto->mutable_aliases() = record.aliases();
  proto->set_hugging_face_name(record.hugging_face_name());
  proto->set_family(record.family());
  if (model != nullptr) {
    proto->set_parameter_count(model->parameters.total_count);
    proto->set_active_parameter_count(model->parameters.active_count);
  }
  proto->set_hugging_face_config(record.hugging_face_config());
  proto->set_source(record.source());
  proto->set_note(model == nullptr ? "This configuration cannot be read: DescribeModel says why." : record.note());
}

}  // namespace sliceplan::rpc
