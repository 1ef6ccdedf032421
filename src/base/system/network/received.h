#pragma once
// What a socket has received.

#include <cstddef>
#include <cstdint>

namespace sdx {

// As the system names it: a descriptor, on Windows a SOCKET; -1: none.
using SocketHandle = std::intptr_t;

// Bytes that a TCP socket has received, those included that nobody has read yet; 0 where the system does not count them. Apart
// from sockets.h, since modules without the engine compile this alone.
std::size_t received_bytes(SocketHandle socket);

}  // namespace sdx
