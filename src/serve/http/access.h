#pragma once
// Access control of a server on this machine: secrets in requests, and protection from pages of other sites that the user's
// browser shows at the same time.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sdx::serve {

// 128 random bits as 32 hexadecimal digits, from the system. Throws Error(io).
std::string random_token();
// Takes the same time wherever the strings differ. Only different lengths return at once.
bool equal_secrets(std::string_view a, std::string_view b);

// Whether the header field Host names this server: one of `names` ("127.0.0.1", "localhost"; without regard to case) and `port`,
// which may be omitted if it is 80. A foreign name that resolves to this machine (DNS rebinding) is not among them.
bool host_is_ours(std::string_view host, std::span<const std::string> names, std::uint16_t port);
}  // namespace sdx::serve
