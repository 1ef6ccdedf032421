#pragma once
// HTTP requests and checksums, through libsdx_hub.so, which is loaded at first use.

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "hub/module_api.h"
#include "hub/url.h"

namespace sdx::hub {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Response {
  int status = 0;
  Headers headers;
  // The first header of this name, case ignored; "" where there is none.
  std::string header(std::string_view name) const;
};

struct Request {
  Url url;
  Headers headers;
  std::chrono::milliseconds timeout{30000};
  std::function<bool(const Response&)> on_response;            // false: the body is not wanted
  std::function<bool(const char* data, std::size_t)> on_data;  // false: stop
};

struct Result {
  Outcome outcome = Outcome::ok;
  std::string error;
};

// One request, redirects not followed. Exceptions of the callbacks end the request and are thrown on. Uses the proxies of
// http_proxy, https_proxy and no_proxy. Throws Error(io) when libsdx_hub.so cannot be loaded.
Result http_get(const Request& request);

// "sha256" or "sha1" of the bytes given so far.
class Digest {
 public:
  explicit Digest(const char* algorithm);
  ~Digest();
  Digest(Digest&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Digest& operator=(Digest&&) = delete;
  void update(const void* data, std::size_t size);
  // Lower-case hexadecimal; once.
  std::string hex();

 private:
  void* state_;
};

}  // namespace sdx::hub
