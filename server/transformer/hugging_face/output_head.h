// What stands behind the last layer: the head over the vocabulary, a classifier, or nothing.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_OUTPUT_HEAD_H_
#define SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_OUTPUT_HEAD_H_

#include "absl/strings/string_view.h"
#include "server/transformer/architecture.h"
#include "server/transformer/hugging_face/config.h"

namespace sliceplan::transformer::hugging_face {

// `root` is the whole document, `class_name` the first of its `architectures`. A bare "...Model" around a nested
// language part says nothing about that part's head.
void ReadOutputHead(Config& root, absl::string_view class_name, bool is_nested, Architecture& architecture);

}  // namespace sliceplan::transformer::hugging_face

#endif  // SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_OUTPUT_HEAD_H_
