// Attention of one layer in a pass: what one chip reads and computes per key, and how many keys there are.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_ATTENTION_KEYS_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_ATTENTION_KEYS_H_

#include "server/planner/serving/serving_job.h"

namespace sliceplan::planner {

// Attention of one layer on one chip.
struct PassAttention {
  bool present = false;
  double kv_bytes_per_key = 0;       // read in decode for each key that is seen
  double indexer_bytes_per_key = 0;  // of every key
  double state_bytes = 0;            // read and written per sequence and step
  double state_held_bytes = 0;
  double kv_bytes_per_stored_key = 0;  // 0: reads an earlier layer's
  double indexer_bytes_per_stored_key = 0;
  double key_limit = 0;             // window or chunk; 0: none
  double compression = 0;           // past entries of pooled keys; 0: none
  double selected = 0;              // at most this many keys or entries; 0: all
  double decode_flops_per_key = 0;  // of one token
  double prefill_flops_per_key = 0;
  double indexer_flops_per_key = 0;
  double scan_flops_per_token = 0;
  double scan_bytes_per_token = 0;
  double exchange_bytes_per_token = 0;  // over tensor: queries and outputs where the cache is split by batch
  double context_bytes_per_token = 0;   // over context: queries and partial outputs, held by the whole group
};

// Keys that a query at position `context` sees, and entries that are kept of a sequence of that length. Windows that
// are kept whole count as no limit in the second.
double KeysSeen(const PassAttention& attention, double context);
double KeysStored(const PassAttention& attention, double context, WindowedKvPolicy policy);
// Sum over prompt tokens at positions [prior, prior + tokens) of the keys that each sees.
double KeysSeenByPrompt(const PassAttention& attention, double prior, double tokens);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_ATTENTION_KEYS_H_
