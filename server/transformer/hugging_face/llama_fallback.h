// A model of unknown family is read like Llama only when nothing in its file speaks against it.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_LLAMA_FALLBACK_H_
#define SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_LLAMA_FALLBACK_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/transformer/hugging_face/config.h"

namespace sliceplan::transformer::hugging_face {

// Why a config of a family that nobody knows does not describe a model like Llama; empty: it may. `class_name` is the
// first of `architectures`.
std::string WhyUnlikeLlama(const Config& config, absl::string_view class_name);

// The same by the keys that are left after all of a Llama's keys were read: any that could change a count.
std::string WhyUnlikeLlamaByKeys(const Config& config);

}  // namespace sliceplan::transformer::hugging_face

#endif  // SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_LLAMA_FALLBACK_H_
