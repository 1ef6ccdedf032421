#pragma once
// Addresses, and names of files that come from the network.

#include <optional>
#include <string>
#include <string_view>

namespace sdx::hub {

// An http or https address. `path` is ready to be sent: percent-encoded, with its query, without a fragment.
struct Url {
  std::string scheme;  // "http" or "https"
  std::string host;    // an IPv6 address has its brackets
  int port = 0;
  std::string path = "/";
  std::string fragment;

  std::string origin() const;  // "https://host:port"
  std::string text() const;    // without the fragment
};

// Throws Error(invalid_argument): another scheme, user names in the address, spaces and control characters in the host, a port
// that is none.
Url parse_url(std::string_view text);

// Resolves a Location header of `from`. Throws Error(io) for addresses that parse_url refuses, and for https leading to http.
Url resolve_location(const Url& from, std::string_view location);

// Everything but letters, digits and "-._~" percent-encoded; '/' stays where `keep_slash`.
std::string percent_encode(std::string_view text, bool keep_slash);
std::string percent_decode(std::string_view text);

// The proxy that the environment asks for: https_proxy or http_proxy (in either case), unless no_proxy names the host.
std::optional<Url> proxy_for(const Url& url);

}  // namespace sdx::hub
