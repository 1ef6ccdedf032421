#include "serve/http/access.h"

#include <algorithm>

#include "base/error.h"
#include "base/system/random_bits.h"
#include "base/text/ascii.h"
#include "serve/http/text.h"

namespace sdx::serve {

std::string random_token() { return fmt::format("{:016x}{:016x}", random_bits(), random_bits()); }

bool equal_secrets(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
  }
  return difference == 0;
}

bool host_is_ours(std::string_view host, std::span<const std::string> names, std::uint16_t port) {
  const HostParts parts = split_host(host);
  if (parts.port ? *parts.port != std::to_string(port) : port != 80) return false;
  return std::any_of(names.begin(), names.end(), [&](const std::string& ours) { return same_word(parts.name, ours); });
}

}  // namespace sdx::serve
