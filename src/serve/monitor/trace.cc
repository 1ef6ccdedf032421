#include "serve/monitor/trace.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/system/random_bits.h"
#include "base/text/json_text.h"
#include "serve/monitor/request_log.h"

namespace sdx::serve {
namespace {

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_zero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

std::int64_t ns(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

std::string attribute(std::string_view name, std::string_view kind, std::string_view value) {
  return fmt::format("{{\"key\":{},\"value\":{{\"{}\":{}}}}}", json_string(name), kind, value);
}

std::string span_json(const Span& span) {
  std::string attributes;
  const auto add = [&](const std::string& text) {
    if (!attributes.empty()) attributes += ',';
    attributes += text;
  };
  for (const auto& [name, value] : span.texts) add(attribute(name, "stringValue", json_string(value)));
  // 64-bit numbers are texts in Protobuf's JSON.
  for (const auto& [name, value] : span.numbers) add(attribute(name, "intValue", fmt::format("\"{}\"", value)));
  std::string out = fmt::format("{{\"traceId\":\"{}\",\"spanId\":\"{}\"", span.context.trace_id, span.context.span_id);
  if (!span.parent_id.empty()) out += fmt::format(",\"parentSpanId\":\"{}\"", span.parent_id);
  if (!span.tracestate.empty()) out += fmt::format(",\"traceState\":{}", json_string(span.tracestate));
  constexpr int kInternal = 1, kServer = 2, kFailed = 2;
  out += fmt::format(",\"name\":{},\"kind\":{},\"startTimeUnixNano\":\"{}\",\"endTimeUnixNano\":\"{}\",\"attributes\":[{}]",
                     json_string(span.name), span.internal ? kInternal : kServer, ns(span.start),
                     ns(span.start) + span.duration.count(), attributes);
  if (span.failed) out += fmt::format(",\"status\":{{\"code\":{}}}", kFailed);
  return out + "}";
}

}  // namespace

std::optional<TraceContext> parse_traceparent(std::string_view text) {
  // 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01; later versions may go on behind that.
  if (text.size() < 55 || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  const std::string_view version = text.substr(0, 2), trace = text.substr(3, 32), span = text.substr(36, 16);
  const std::string_view flags = text.substr(53, 2);
  if (!is_hex(version) || !is_hex(trace) || !is_hex(span) || !is_hex(flags) || version == "ff") return std::nullopt;
  if (version == "00" ? text.size() != 55 : text.size() > 55 && text[55] != '-') return std::nullopt;
  if (is_zero(trace) || is_zero(span)) return std::nullopt;
  const bool sampled = (flags[1] >= 'a' ? flags[1] - 'a' + 10 : flags[1] - '0') % 2 != 0;
  return TraceContext{std::string(trace), std::string(span), sampled};
}

std::string traceparent(const TraceContext& context) {
  return fmt::format("00-{}-{}-{}", context.trace_id, context.span_id, context.sampled ? "01" : "00");
}

std::string random_id() { return fmt::format("{:016x}", random_bits() | 1); }  // zero is no identifier

TraceContext begin_span(const std::optional<TraceContext>& parent, bool sample_new) {
  TraceContext context;
  context.trace_id = parent ? parent->trace_id : random_id() + random_id();
  context.span_id = random_id();
  context.sampled = parent ? parent->sampled : sample_new;
  return context;
}

std::string otlp_json(const std::vector<Span>& spans, std::string_view service, std::string_view version) {
  std::string list;
  for (const Span& span : spans) {
    if (!list.empty()) list += ',';
    list += span_json(span);
  }
  return fmt::format(
      "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{},{}]}},\"scopeSpans\":[{{\"scope\":{{\"name\":\"sardonyx.serve\"}}"
      ","
      "\"spans\":[{}]}}]}}]}}",
      attribute("service.name", "stringValue", json_string(service)),
      attribute("service.version", "stringValue", json_string(version)), list);
}

struct SpanExporter::Impl {
  std::function<bool(const std::vector<Span>&)> send;
  ExporterOptions options;
  mutable std::mutex mutex;
  std::condition_variable wake;
  std::deque<Span> waiting;
  bool ending = false;
  std::uint64_t sent = 0, dropped = 0;
  std::thread thread;

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [this] { return ending || !waiting.empty(); });
      if (waiting.empty()) return;
      wake.wait_for(lock, options.delay, [this] { return ending || waiting.size() >= options.batch; });
      const std::size_t count = std::min(waiting.size(), options.batch);
      const std::vector<Span> batch(std::make_move_iterator(waiting.begin()),
                                    std::make_move_iterator(waiting.begin() + static_cast<std::ptrdiff_t>(count)));
      waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(count));
      lock.unlock();
      const bool fine = send(batch);
      lock.lock();
      (fine ? sent : dropped) += count;
      if (!fine && ending) {  // a collector that does not answer must not keep the server from ending
        dropped += waiting.size();
        return;
      }
    }
  }
};

SpanExporter::SpanExporter(std::function<bool(const std::vector<Span>&)> send, const ExporterOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->send = std::move(send);
  impl_->options = options;
  impl_->thread = std::thread([this] { impl_->run(); });
}

SpanExporter::~SpanExporter() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->ending = true;
  }
  impl_->wake.notify_all();
  impl_->thread.join();
}

void SpanExporter::add(Span span) {
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->waiting.size() >= impl_->options.most_waiting) {
      ++impl_->dropped;
      return;
    }
    impl_->waiting.push_back(std::move(span));
  }
  impl_->wake.notify_one();
}

std::uint64_t SpanExporter::sent() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->sent;
}

std::uint64_t SpanExporter::dropped() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->dropped;
}

}  // namespace sdx::serve
