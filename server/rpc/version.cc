#include "server/rpc/version.h"

namespace sliceplan::rpc {

const char* EngineVersion() { return SLICEPLAN_VERSION; }

}  // namespace sliceplan::rpc
