#pragma once
// Which handler answers which path.
//
//   router.add({"GET", "/v2/models/{model}", Runs::at_once}, [](const Request& request) { … request.part("model") … });
//   router.add({"POST", "/v1/chat/completions", Runs::on_pool, 64 << 20}, [](RequestPtr request, ResponderPtr responder) { … });

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/message.h"
#include "serve/http/server.h"

namespace sdx::serve {

enum class Runs {
  at_once,  // on the thread that reads and writes: takes microseconds and never waits
  on_pool   // on one of a few threads; slow work (text generation) answers later and does not keep the thread
};

enum class Needs {
  key,      // an API key, where the server has a file of them
  nothing,  // health, and the page itself
};

struct Route {
  std::string method;   // "GET" (which answers HEAD too), "POST" …
  std::string pattern;  // "/v2/models/{model}/infer"; {name...} at the end takes all parts that follow, at least one
  Runs runs = Runs::on_pool;
  std::uint64_t body_bytes = 1 << 20;  // the most that a request's body may have
  ErrorShape shape = api_error_shape;  // the form of this route's errors: the guard's, the server's and the handler's
  Needs needs = Needs::key;
  bool limited = true;  // counts against the limits of a key and of the server; not so what monitors ask
};

// May answer later, from any thread. What it throws becomes an answer like a Handler's, unless it has answered.
using AsyncHandler = std::function<void(RequestPtr request, ResponderPtr responder)>;

struct RouterEntry {
  Route route;
  Handler handler;  // one of the two
  AsyncHandler async;
  std::vector<std::string> segments;
};

// Filled before the server starts; then thread-safe.
class Router {
 public:
  Router();
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  // Throws Error(invalid_argument) where the same method and pattern are there already.
  void add(Route route, Handler handler);
  void add(Route route, AsyncHandler handler);

  using Entry = RouterEntry;
  struct Match {
    const Entry* entry = nullptr;                            // null: no such path, or not with this method
    std::vector<std::pair<std::string, std::string>> parts;  // {name} and what stands there
    std::string allowed;  // "GET, HEAD, POST": the path's methods, if none has the requested one; empty: no such path
  };
  // Fixed parts go before {name}, {name} before {name...}.
  Match find(std::string_view method, std::string_view path) const;

  // Answers by `entry`, on this thread.
  static void run(const Entry& entry, const RequestPtr& request, const ResponderPtr& responder);

  const std::vector<std::unique_ptr<Entry>>& entries() const noexcept { return entries_; }

 private:
  void insert(Route route, Handler handler, AsyncHandler async);
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace sdx::serve
