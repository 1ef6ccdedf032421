#include "serve/server/application.h"

#include <algorithm>
#include <array>

#include "base/log.h"
#include "serve/http/content_encoding.h"

namespace sdx::serve {
namespace {

constexpr std::size_t kMostIdBytes = 128;
constexpr int kClientGone = 499;

bool is_plain_id(std::string_view id) {
  return !id.empty() && id.size() <= kMostIdBytes &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

const std::vector<double>& seconds() {
  static const std::vector<double> bounds{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                          0.1,    0.25,    0.5,    1,     2.5,    5,     10,   30,    60};
  return bounds;
}

double in_seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }
double in_ms(std::chrono::nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

std::string_view method_label(std::string_view method) {
  for (const std::string_view known : {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"}) {
    if (method == known) return known;
  }
  return "other";
}

// False where the request was refused.
bool decode(const Route& route, Request& request, Responder& responder) {
  std::optional<Response> refused;
  try {
    refused = decode_body(request, route.body_bytes, route.shape);
  } catch (const std::exception& e) {  // no memory
    refused = route.shape(503, e.what());
  }
  if (refused) responder.respond(std::move(*refused));
  return !refused;
}

}  // namespace

// The metrics of one route, so that a request need not look them up by name.
struct Application::RouteNumbers {
  Histogram* duration = nullptr;
  std::array<std::atomic<Counter*>, 600> by_status{};
};

Application::Application(const Router& router, Guard& guard, Metrics& metrics, Log& log, SpanExporter* spans,
                         const ApplicationOptions& options)
    : router_(router),
      guard_(guard),
      metrics_(metrics),
      log_(log),
      spans_(spans),
      options_(options),
      pool_(options.threads, options.waiting),
      received_(metrics.counter("sdx_http_received_bytes_total", "Bytes of the bodies of requests.")),
      sent_(metrics.counter("sdx_http_sent_bytes_total", "Bytes of the bodies of answers.")) {
  const auto add = [&](const RouterEntry* entry, std::string_view method, std::string_view pattern) {
    auto numbers = std::make_unique<RouteNumbers>();
    numbers->duration =
        &metrics.histogram("sdx_http_request_duration_seconds", "From the head of a request to the end of its answer.", seconds(),
                           {{"method", std::string(method)}, {"route", std::string(pattern)}});
    numbers_.emplace(entry, std::move(numbers));
  };
  for (const auto& entry : router.entries()) add(entry.get(), entry->route.method, entry->route.pattern);
  add(nullptr, "other", "none");
}

Application::~Application() = default;

ServerCallbacks Application::callbacks() {
  ServerCallbacks callbacks;
  callbacks.admit = [this](Request& request) { return admit(request); };
  callbacks.entry = [this](const RequestPtr& request, const ResponderPtr& responder) { enter(request, responder); };
  callbacks.decorate = [this](const Request& request, Response& response) {
    guard_.decorate(request, response);
    if (std::string ignored = request.notes->ignored(); !ignored.empty()) {
      response.headers.emplace_back("Sdx-Ignored", std::move(ignored));
    }
  };
  callbacks.ended = [this](const Request& request, const Outcome& outcome) { ended(request, outcome); };
  return callbacks;
}

void Application::begin(Request& request) const {
  const std::string_view id = request.header("x-request-id");
  request.id = is_plain_id(id) ? std::string(id) : random_id();
  if (options_.log_prompts) request.notes->want_prompt();
  const std::string_view parent = request.header("traceparent");
  if (parent.empty() && spans_ == nullptr) return;
  const auto context = parse_traceparent(parent);
  const TraceContext own = begin_span(context, spans_ != nullptr);
  request.traceparent = traceparent(own);
  if (own.sampled && spans_ != nullptr) request.notes->want_stages();
  if (context) request.tracestate = request.header("tracestate");
}

Admission Application::admit(Request& request) {
  begin(request);
  Router::Match match = router_.find(request.method, request.path);
  Admission admission;
  admission.shape = api_error_shape;
  const Route* const route = match.entry ? &match.entry->route : nullptr;
  if (route) {
    request.matched = match.entry;
    request.route = route->pattern;
    request.parts = std::move(match.parts);
    admission.shape = route->shape;
    admission.body_bytes = route->body_bytes;
  }
  if ((admission.refused = guard_.check_caller(request))) return admission;
  if (!route && (admission.refused = guard_.preflight(request, match.allowed))) return admission;
  if ((admission.refused = guard_.check_key(request, route))) return admission;
  if (route) {
    admission.refused = guard_.check_load(request, *route);
  } else if (match.allowed.empty()) {
    admission.refused = api_error(404, fmt::format("there is no '{}' here", request.path));
  } else {
    admission.refused = api_error(405, fmt::format("'{}' takes {}, not {}", request.path, match.allowed, request.method));
    admission.refused->headers.emplace_back("Allow", match.allowed);
  }
  return admission;
}

void Application::enter(const RequestPtr& request, const ResponderPtr& responder) {
  const RouterEntry& entry = *request->matched;
  const bool encoded = is_encoded(*request);
  if (entry.route.runs == Runs::at_once && !encoded) return Router::run(entry, request, responder);
  const auto work = [&entry, request, responder, encoded] {
    if (*request->gone) return responder->respond(entry.route.shape(kClientGone, "the client has disconnected"));
    if (encoded && !decode(entry.route, *request, *responder)) return;
    Router::run(entry, request, responder);
  };
  if (pool_.submit(work)) return;
  Response busy = entry.route.shape(503, "the server is busy; try again later");
  busy.headers.emplace_back("Retry-After", "1");
  responder->respond(std::move(busy));
}

void Application::ended(const Request& request, const Outcome& outcome) {
  // Failing to answer a client that has disconnected is not an error of the server.
  const bool unheard = outcome.status >= 500 && *request.gone;
  const int status = outcome.status == 0 || unheard ? kClientGone : outcome.status;
  count(request, outcome, status);
  // Whoever looks every few seconds whether all is well would fill the log.
  const bool quiet = request.matched != nullptr && !request.matched->route.limited && status < 400;
  if (quiet) return;
  write_line(request, outcome, status);
  if (spans_ != nullptr) trace(request, outcome, status);
}

void Application::count(const Request& request, const Outcome& outcome, int status) {
  received_.add(static_cast<double>(outcome.received));
  sent_.add(static_cast<double>(outcome.sent));
  RouteNumbers& numbers = *numbers_.at(request.matched);
  numbers.duration->observe(in_seconds(outcome.duration));
  std::atomic<Counter*>& slot = numbers.by_status[static_cast<std::size_t>(std::clamp(status, 0, 599))];
  Counter* counter = slot.load(std::memory_order_acquire);
  if (counter == nullptr || request.matched == nullptr) {
    const std::string_view method =
        request.matched ? std::string_view(request.matched->route.method) : method_label(request.method);
    counter = &metrics_.counter("sdx_http_requests_total", "Requests by status; 499: the client disconnected first.",
                                {{"method", std::string(method)},
                                 {"route", request.matched ? request.route : "none"},
                                 {"status", fmt::format("{}", status)}});
    if (request.matched) slot.store(counter, std::memory_order_release);
  }
  counter->add();
}

void Application::write_line(const Request& request, const Outcome& outcome, int status) {
  const Notes::Values notes = request.notes->values();
  LogLine line;
  line.add("id", request.id).add("client", request.client).add("method", request.method).add("path", request.path);
  line.add("route", request.route).add("status", std::int64_t{status}).add("ms", in_ms(outcome.duration));
  line.add("first_byte_ms", in_ms(outcome.to_first_byte)).add("received", static_cast<std::int64_t>(outcome.received));
  line.add("sent", static_cast<std::int64_t>(outcome.sent)).add("key", request.key).add("model", notes.model);
  if (notes.prompt_tokens > 0) line.add("prompt_tokens", notes.prompt_tokens).add("answer_tokens", notes.answer_tokens);
  if (!request.traceparent.empty()) line.add("trace", std::string_view(request.traceparent).substr(3, 32));
  if (!outcome.whole) line.add("cut", std::int64_t{1});
  if (options_.log_prompts) line.add("prompt", notes.prompt);
  if (log::level() == log::Level::debug) line.add("ignored", notes.ignored);
  log_.add(request.arrived_at, status >= 500 ? "error" : "info", "request", line);
}

void Application::trace(const Request& request, const Outcome& outcome, int status) {
  const auto context = parse_traceparent(request.traceparent);
  if (!context || !context->sampled) return;
  const Notes::Values notes = request.notes->values();
  Span span;
  span.context = *context;
  if (const auto parent = parse_traceparent(request.header("traceparent"))) span.parent_id = parent->span_id;
  span.tracestate = request.tracestate;
  span.name = request.route.empty() ? request.method : fmt::format("{} {}", request.method, request.route);
  span.start = request.arrived_at;
  span.duration = outcome.duration;
  span.failed = status >= 500;
  span.texts = {{"http.request.method", request.method},
                {"url.path", request.path},
                {"client.address", request.client},
                {"sdx.request.id", request.id}};
  if (!request.route.empty()) span.texts.emplace_back("http.route", request.route);
  if (!notes.model.empty()) span.texts.emplace_back("gen_ai.request.model", notes.model);
  if (!request.key.empty()) span.texts.emplace_back("sdx.key", request.key);
  span.numbers = {{"http.response.status_code", status},
                  {"http.request.body.size", static_cast<std::int64_t>(outcome.received)},
                  {"http.response.body.size", static_cast<std::int64_t>(outcome.sent)}};
  if (notes.prompt_tokens > 0) {
    span.numbers.emplace_back("gen_ai.usage.input_tokens", notes.prompt_tokens);
    span.numbers.emplace_back("gen_ai.usage.output_tokens", notes.answer_tokens);
  }
  spans_->add(std::move(span));
  for (const Notes::Stage& stage : notes.stages) {
    Span part;
    part.context = begin_span(context, true);
    part.parent_id = context->span_id;
    part.tracestate = request.tracestate;
    part.name = stage.name;
    part.internal = true;
    part.start =
        request.arrived_at + std::chrono::duration_cast<std::chrono::system_clock::duration>(stage.begin - request.arrived);
    part.duration = stage.end - stage.begin;
    spans_->add(std::move(part));
  }
}

}  // namespace sdx::serve
