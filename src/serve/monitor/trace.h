#pragma once
// Traces: who called whom (W3C Trace Context, https://www.w3.org/TR/trace-context/), and spans sent to a collector by OTLP/HTTP
// (https://opentelemetry.io/docs/specs/otlp/), as JSON.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdx::serve {

struct TraceContext {
  std::string trace_id;  // 32 hexadecimal digits
  std::string span_id;   // 16
  bool sampled = false;
};

// Parses a header field traceparent; nothing if it is invalid.
std::optional<TraceContext> parse_traceparent(std::string_view text);
std::string traceparent(const TraceContext& context);
// The span of a request that came with `parent`, or of a new trace.
TraceContext begin_span(const std::optional<TraceContext>& parent, bool sample_new);

// 16 hexadecimal digits, different each time.
std::string random_id();

struct Span {
  TraceContext context;
  std::string parent_id;  // empty: the first of its trace
  std::string tracestate;
  std::string name;       // "POST /v1/chat/completions"
  bool internal = false;  // a part of the server's own work
  std::chrono::system_clock::time_point start;
  std::chrono::nanoseconds duration{0};
  bool failed = false;
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<std::pair<std::string, std::int64_t>> numbers;
};

// `{"resourceSpans": [...]}`
std::string otlp_json(const std::vector<Span>& spans, std::string_view service, std::string_view version);

struct ExporterOptions {
  std::size_t most_waiting = 4096;  // spans; more are dropped
  std::size_t batch = 512;
  std::chrono::milliseconds delay{1000};  // that the first of a batch waits for others
};

// Collects spans, and hands batches of them to `send` on a thread of its own. Thread-safe.
class SpanExporter {
 public:
  // `send` returns false if the batch was lost.
  SpanExporter(std::function<bool(const std::vector<Span>&)> send, const ExporterOptions& options = {});
  ~SpanExporter();  // sends what waits, once
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  void add(Span span);
  std::uint64_t sent() const;
  std::uint64_t dropped() const;  // because too many waited, or they could not be sent

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sdx::serve
