#pragma once
// The steps for every request, whatever it asks for: guard, route, threads, metrics, log line, span.

#include <memory>
#include <unordered_map>

#include "serve/http/handler_pool.h"
#include "serve/http/router.h"
#include "serve/http/server.h"
#include "serve/monitor/metrics.h"
#include "serve/monitor/request_log.h"
#include "serve/monitor/trace.h"
#include "serve/server/guard.h"

namespace sdx::serve {

struct ApplicationOptions {
  bool log_prompts = false;
  int threads = 64;    // of handlers that may wait
  int waiting = 1024;  // requests that wait for such a thread; beyond: 503
};

// Thread-safe. The router is filled before; everything given must outlive it, and it the server.
class Application {
 public:
  Application(const Router& router, Guard& guard, Metrics& metrics, Log& log, SpanExporter* spans,
              const ApplicationOptions& options);
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  ServerCallbacks callbacks();

 private:
  struct RouteNumbers;

  Admission admit(Request& request);
  void begin(Request& request) const;
  void enter(const RequestPtr& request, const ResponderPtr& responder);
  void ended(const Request& request, const Outcome& outcome);
  void count(const Request& request, const Outcome& outcome, int status);
  void write_line(const Request& request, const Outcome& outcome, int status);
  void trace(const Request& request, const Outcome& outcome, int status);

  const Router& router_;
  Guard& guard_;
  Metrics& metrics_;
  Log& log_;
  SpanExporter* const spans_;
  const ApplicationOptions options_;
  HandlerPool pool_;
  std::unordered_map<const RouterEntry*, std::unique_ptr<RouteNumbers>> numbers_;
  Counter& received_;
  Counter& sent_;
};

}  // namespace sdx::serve
