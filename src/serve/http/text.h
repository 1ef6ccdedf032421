#pragma once
// Words of HTTP.

#include <optional>
#include <string_view>

#include "base/text/ascii.h"

namespace sdx::serve {

// Without spaces and tabs at its ends.
inline std::string_view trimmed(std::string_view text) noexcept { return trimmed_text(text, " \t"); }

// "localhost" and "8080" of "localhost:8080", "[::1]" of "[::1]".
struct HostParts {
  std::string_view name;
  std::optional<std::string_view> port;
};

inline HostParts split_host(std::string_view host) noexcept {
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos;
  if (!has_port) return {host, std::nullopt};
  return {host.substr(0, colon), host.substr(colon + 1)};
}

}  // namespace sdx::serve
