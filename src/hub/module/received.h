#pragma once

#include <cstddef>

namespace sdx::hub {

// How many bytes the kernel has received on a TCP socket; 0 where it does not say (Linux before 4.1).
std::size_t received_bytes(int socket);

}  // namespace sdx::hub
