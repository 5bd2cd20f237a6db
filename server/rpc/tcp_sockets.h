// The TCP sockets of this process, which libraries open and do not hand out.
#ifndef SLICEPLAN_SERVER_RPC_TCP_SOCKETS_H_
#define SLICEPLAN_SERVER_RPC_TCP_SOCKETS_H_

#include <optional>
#include <string>
#include <vector>

namespace sliceplan::rpc {

struct TcpSocket {
  int fd = -1;
  bool listening = false;
  std::optional<int> peer_port;  // nullopt: a listener, or the peer is gone
  std::string peer_address;      // "127.0.0.1", "::1"
};

// Those whose own end is `port`, now. Looks at every open file of the process.
std::vector<TcpSocket> TcpSocketsOf(int port);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_TCP_SOCKETS_H_
