#include "server/rpc/tcp_sockets.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>

#include "absl/strings/numbers.h"

namespace sliceplan::rpc {
namespace {

using NameOf = int (*)(int, sockaddr*, socklen_t*);

struct End {
  int port = 0;
  std::string address;
};

// One end of a TCP socket; nullopt for anything else, and for an end that there is not.
std::optional<End> EndOf(int fd, NameOf name_of, bool with_address) {
  sockaddr_storage storage = {};
  socklen_t size = sizeof(storage);
  if (name_of(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return std::nullopt;
  End end;
  const void* address = nullptr;
  if (storage.ss_family == AF_INET) {
    const auto* const v4 = reinterpret_cast<const sockaddr_in*>(&storage);
    end.port = ntohs(v4->sin_port);
    address = &v4->sin_addr;
  } else if (storage.ss_family == AF_INET6) {
    const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
    end.port = ntohs(v6->sin6_port);
    address = &v6->sin6_addr;
  } else {
    return std::nullopt;
  }
  char text[INET6_ADDRSTRLEN] = "";
  if (with_address && inet_ntop(storage.ss_family, address, text, sizeof(text)) != nullptr) end.address = text;
  return end;
}

}  // namespace

std::vector<TcpSocket> TcpSocketsOf(int port) {
  std::vector<TcpSocket> sockets;
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return sockets;
  while (const dirent* const entry = readdir(directory)) {
    int fd = 0;
    if (!absl::SimpleAtoi(entry->d_name, &fd)) continue;
    const std::optional<End> own = EndOf(fd, &getsockname, /*with_address=*/false);
    if (!own.has_value() || own->port != port) continue;
    TcpSocket socket;
    socket.fd = fd;
    int listening = 0;
    socklen_t size = sizeof(listening);
    socket.listening = getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening != 0;
    if (std::optional<End> peer = EndOf(fd, &getpeername, /*with_address=*/true); peer.has_value()) {
      socket.peer_port = peer->port;
      socket.peer_address = std::move(peer->address);
    }
    sockets.push_back(std::move(socket));
  }
  closedir(directory);
  return sockets;
}

}  // namespace sliceplan::rpc
