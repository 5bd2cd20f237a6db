// The version of the engine: that of the project (the top CMakeLists.txt).
#ifndef SLICEPLAN_SERVER_RPC_VERSION_H_
#define SLICEPLAN_SERVER_RPC_VERSION_H_

namespace sliceplan::rpc {

// "1.0.0". Changes with every change of an answer.
const char* EngineVersion();

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_VERSION_H_
