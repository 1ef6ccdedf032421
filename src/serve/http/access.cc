#include "serve/http/access.h"

#include <sys/random.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text/ascii.h"
#include "serve/http/text.h"

namespace sdx::serve {

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t n = ::getrandom(bytes.data() + got, bytes.size() - got, 0);
    if (n < 0 && errno != EINTR) fail(ErrorCode::io, "the system provides no random numbers for the page's token");
    if (n > 0) got += static_cast<std::size_t>(n);
  }
  std::string text;
  for (const unsigned char b : bytes) text += fmt::format("{:02x}", b);
  return text;
}

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
