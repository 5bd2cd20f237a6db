// How many files, and so connections, the process may have open.
#ifndef SLICEPLAN_SERVER_RPC_FILE_LIMIT_H_
#define SLICEPLAN_SERVER_RPC_FILE_LIMIT_H_

namespace sliceplan::rpc {

// Raises the soft limit to the hard one. Shells and service managers often give 1,024 of what could be had, because of
// programs that use select(), and gRPC does not survive running out.
void RaiseFileLimit();

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_FILE_LIMIT_H_
