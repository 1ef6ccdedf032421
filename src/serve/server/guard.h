#pragma once
// Access control of the server: keys, names of the server, pages of other sites, and the number of requests that run at a time.

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/http/message.h"
#include "serve/http/router.h"
#include "serve/server/keys.h"

namespace sdx::serve {

struct GuardOptions {
  // Names that clients may use for this server (Host), in lower case and without port. Empty: any.
  std::vector<std::string> hosts;
  std::vector<std::string> origins;  // whose pages browsers may let ask: "https://example.com"; "*": all
  int most_running = 4096;           // limited requests at a time; beyond: 503
};

// Thread-safe.
class Guard {
 public:
  Guard(GuardOptions options, std::unique_ptr<Keys> keys);  // null: no keys

  // The checks, in this order. Nothing if the request may proceed; else the answer. check_key sets request.key, and both it and
  // check_load set request.held. `route`: null for a path that does not exist.
  std::optional<Response> check_caller(const Request& request) const;
  std::optional<Response> check_key(Request& request, const Route* route);
  std::optional<Response> check_load(Request& request, const Route& route);
  // Answers the preflight request that browsers send before a page of another site may ask; nothing for other requests.
  std::optional<Response> preflight(const Request& request, std::string_view allowed_methods) const;
  void decorate(const Request& request, Response& response) const;

  Keys* keys() noexcept { return keys_.get(); }
  int running() const noexcept { return *running_; }

 private:
  bool allows(std::string_view origin) const;
  bool foreign(const Request& request) const;

  const GuardOptions options_;
  const std::unique_ptr<Keys> keys_;
  std::shared_ptr<std::atomic<int>> running_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace sdx::serve
