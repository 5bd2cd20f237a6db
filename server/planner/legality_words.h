// What legality.cc says about each broken rule, and about what is uneven in a legal plan.
#ifndef SLICEPLAN_SERVER_PLANNER_LEGALITY_WORDS_H_
#define SLICEPLAN_SERVER_PLANNER_LEGALITY_WORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/hardware/slice.h"
#include "server/hardware/violation.h"
#include "server/planner/legality.h"
#include "server/planner/parallelism.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

// `degree` may be ici x dcn, then said as a total.
hardware::Violation DegreeOutOfRange(absl::string_view level, LogicalAxis axis, int64_t degree);
hardware::Violation ChipsDiffer(const AxisDegrees& ici, int64_t product, int64_t chip_count);
hardware::Violation SlicesDiffer(const AxisDegrees& dcn, int64_t product, int64_t slice_count);

hardware::Violation HeadsNotDivisible(const ModelDivisors& divisors, const ModelDivisors::Unit& unit,
                                      const Parallelism& parallelism, int64_t tensor);
hardware::Violation SequenceNotSharded(int64_t sequence_length, int64_t context, int64_t tensor);
// `chunks`: what the sequence must be divisible by.
hardware::Violation ContextNotDivisible(int64_t sequence_length, const Parallelism& parallelism, int64_t context,
                                        int64_t chunks);
hardware::Violation NoExperts(const Parallelism& parallelism, int64_t expert);
hardware::Violation ExpertsNotDivisible(const ModelDivisors& divisors, int64_t expert_count,
                                        const Parallelism& parallelism, int64_t expert);

hardware::Violation VirtualStagesOutOfRange(int64_t virtual_stages);
hardware::Violation VirtualStagesWithoutPipeline(int64_t virtual_stages);
hardware::Violation VirtualStagesNeedInterleaving(int64_t virtual_stages);
hardware::Violation InterleavingNeedsVirtualStages();
hardware::Violation TooManyStages(const Parallelism& parallelism, int64_t stages, int64_t layer_count);
hardware::Violation TooManyChunks(int64_t stages, int64_t virtual_stages, int64_t layer_count);
hardware::Violation LayersDoNotAddUp(const std::vector<int32_t>& given, int64_t sum, int64_t chunks,
                                     int64_t layer_count);

hardware::Violation MicrobatchesOutOfRange(int64_t microbatches);
hardware::Violation MicrobatchesWithoutPipeline(int64_t microbatches);
// Interleaved schedules run whole rounds of `stages` microbatches.
hardware::Violation MicrobatchesNotInRounds(int64_t microbatches, int64_t stages);
// `unit`: what the batch must be a multiple of.
hardware::Violation BatchNotDivisible(int64_t batch, int64_t data, int64_t fsdp, int64_t expert, int64_t unit);
hardware::Violation AccumulationNotDivisible(int64_t sequences_per_shard, int64_t accumulation);
// `multiple_of`: what else the count must be a multiple of.
hardware::Violation MicrobatchesNotDivisible(int64_t sequences, int64_t microbatches, int64_t multiple_of);

// Sentences about a legal plan. Nothing is said of what is even.
void DescribeUnevenness(const ModelDivisors& divisors, const hardware::Slice& slice, const TrainingWorkload& workload,
                        const Parallelism& parallelism, std::vector<std::string>& sentences,
                        std::vector<Padding>* paddings);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_LEGALITY_WORDS_H_
