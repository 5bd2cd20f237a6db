// The service that fuzz programs call, and what every reply must hold to.
#ifndef SLICEPLAN_TESTS_FUZZ_FUZZ_SERVICE_H_
#define SLICEPLAN_TESTS_FUZZ_FUZZ_SERVICE_H_

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "server/rpc/method_table.h"
#include "server/rpc/result.h"

namespace sliceplan::fuzz {

// Prints and aborts: libFuzzer keeps the input.
[[noreturn]] void Fail(absl::string_view what);

// Of the built-in catalog; the same one for the whole run.
const rpc::MethodTable& Service();
// The method that a byte of the input chooses.
const rpc::Method& ChosenMethod(unsigned char choice);

// A context whose caller goes away after some polls, so that searches end.
rpc::CallContext ImpatientCall();

// Not an engine error, and details that fit into a trailer.
void CheckError(const rpc::Result& result);
// No NaN and no infinity at any depth.
void CheckFinite(const google::protobuf::Message& message);

}  // namespace sliceplan::fuzz

#endif  // SLICEPLAN_TESTS_FUZZ_FUZZ_SERVICE_H_
