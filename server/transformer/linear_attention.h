// Sizes of constant-state layers that follow from their fields.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_LINEAR_ATTENTION_H_
#define SLICEPLAN_SERVER_TRANSFORMER_LINEAR_ATTENTION_H_

#include <cstdint>

#include "server/transformer/architecture.h"

namespace sliceplan::transformer {

// Width of the value path: inner_dim of the Mambas, heads x head dim of the others.
int64_t InnerDim(const LinearAttention& attention);

// Channels that pass through the causal convolution; 0 without one.
int64_t ConvolutionChannels(const LinearAttention& attention);

// Elements of the recurrent state of one sequence, usually held in fp32.
int64_t RecurrentStateElements(const LinearAttention& attention);

// Past inputs that the convolution keeps for one sequence: conv_width - 1 of each channel, in the activations' format.
int64_t ConvolutionStateElements(const LinearAttention& attention);

// Tokens of one chunk of the parallel form; the default of the reference kernels when the architecture names none.
int32_t ChunkSize(const LinearAttention& attention);

}  // namespace sliceplan::transformer

#endif  // SLICEPLAN_SERVER_TRANSFORMER_LINEAR_ATTENTION_H_
