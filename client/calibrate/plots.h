// Charts of the predicted figures, one pair per metric and kind of chip.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_PLOTS_H_
#define SLICEPLAN_CLIENT_CALIBRATE_PLOTS_H_

#include <string>
#include <vector>

#include "client/calibrate/accuracy.h"
#include "server/catalog/catalog.h"

namespace sliceplan::calibrate {

struct Picture {
  std::string file;  // "step_seconds_tpu_predicted.svg"
  std::string svg;
};

// Scored figures: predicted against measured, coloured by chip, and ratios by source. A figure is drawn as predicted
// with its group left out where `left_out` has it (it has the cases of `answered`, in their order, or none).
std::vector<Picture> PicturesOf(const std::vector<AnsweredCase>& answered, const std::vector<AnsweredCase>& left_out,
                                const catalog::Catalog& catalog);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_PLOTS_H_
