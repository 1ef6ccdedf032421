#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "serve/monitor/request_log.h"
#include "serve/monitor/trace.h"

namespace sdx::serve {
namespace {

const auto kTime = std::chrono::system_clock::time_point(std::chrono::milliseconds(1767323045678));

TEST(Log, WritesText) {
  std::string out;
  {
    Log log(LogFormat::text, [&](std::string_view lines) { out += std::string(lines) + "\n"; });
    log.add(
        kTime, "info", "request",
        LogLine().add("path", "/a b\"\n").add("status", std::int64_t{200}).add("ms", 1.5).add("key", "").add("route", "/{x}"));
  }
  EXPECT_EQ(out, "2026-01-02T03:04:05.678Z info request path=\"/a b\\\"\\n\" status=200 ms=1.500 route=/{x}\n");
}

TEST(Log, WritesJson) {
  std::string out;
  {
    Log log(LogFormat::json, [&](std::string_view lines) { out += std::string(lines) + "\n"; });
    log.add(kTime, "error", "a\nb", LogLine().add("path", "/\xff\"").add("n", std::int64_t{-5}));
    log.flush();
    log.add(kTime, "info", "c");
  }
  const std::size_t end = out.find('\n');
  const auto line = nlohmann::json::parse(out.substr(0, end));
  EXPECT_EQ(line["time"], "2026-01-02T03:04:05.678Z");
  EXPECT_EQ(line["level"], "error");
  EXPECT_EQ(line["message"], "a\nb");
  EXPECT_EQ(line["path"], "/\xef\xbf\xbd\"");
  EXPECT_EQ(line["n"], -5);
  EXPECT_EQ(nlohmann::json::parse(out.substr(end + 1))["message"], "c");
}

TEST(Log, DoesNotWaitForWhoeverReads) {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  std::uint64_t lines = 0;
  Log log(LogFormat::text, [&](std::string_view text) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return open; });
    lines += 1 + static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
  });
  const std::string large(1 << 20, 'x');
  for (int i = 0; i < 20; ++i) log.add("info", large);
  EXPECT_GT(log.dropped(), 0u);
  {
    const std::lock_guard lock(mutex);
    open = true;
  }
  changed.notify_all();
  log.flush();
  EXPECT_EQ(lines + log.dropped(), 20u);
}

TEST(Trace, ReadsTraceparent) {
  const std::string good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const auto context = parse_traceparent(good);
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(context->span_id, "00f067aa0ba902b7");
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(traceparent(*context), good);
  EXPECT_FALSE(parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-02")->sampled);
  EXPECT_TRUE(parse_traceparent("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later"));
  for (const char* bad :
       {"", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4BF92F3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01"}) {
    EXPECT_FALSE(parse_traceparent(bad)) << bad;
  }
}

TEST(Trace, GoesOn) {
  const auto parent = parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00");
  const TraceContext child = begin_span(parent, true);
  EXPECT_EQ(child.trace_id, parent->trace_id);
  EXPECT_NE(child.span_id, parent->span_id);
  EXPECT_FALSE(child.sampled);
  const TraceContext fresh = begin_span(std::nullopt, true);
  EXPECT_TRUE(parse_traceparent(traceparent(fresh)));
  EXPECT_TRUE(fresh.sampled);
  EXPECT_NE(begin_span(std::nullopt, false).trace_id, fresh.trace_id);
}

Span span(const std::string& name) {
  Span out;
  out.context = *parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  out.name = name;
  out.start = kTime;
  out.duration = std::chrono::milliseconds(5);
  return out;
}

TEST(Trace, WritesOtlp) {
  Span one = span("POST /v1/chat/completions");
  one.parent_id = "00f067aa0ba902b8";
  one.tracestate = "vendor=\"x\"";
  one.failed = true;
  one.texts = {{"http.route", "/{x}"}};
  one.numbers = {{"http.response.status_code", 500}};
  const auto document = nlohmann::json::parse(otlp_json({one, span("GET")}, "sdx serve", "1.2.3"));
  const auto& resource = document["resourceSpans"][0];
  EXPECT_EQ(resource["resource"]["attributes"][0]["value"]["stringValue"], "sdx serve");
  const auto& spans = resource["scopeSpans"][0]["spans"];
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0]["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(spans[0]["parentSpanId"], "00f067aa0ba902b8");
  EXPECT_EQ(spans[0]["traceState"], "vendor=\"x\"");
  EXPECT_EQ(spans[0]["kind"], 2);
  EXPECT_EQ(spans[0]["startTimeUnixNano"], "1767323045678000000");
  EXPECT_EQ(spans[0]["endTimeUnixNano"], "1767323045683000000");
  EXPECT_EQ(spans[0]["status"]["code"], 2);
  EXPECT_EQ(spans[0]["attributes"][1]["value"]["intValue"], "500");
  EXPECT_FALSE(spans[1].contains("parentSpanId"));
}

TEST(SpanExporter, SendsBatches) {
  std::mutex mutex;
  std::vector<std::size_t> sizes;
  {
    SpanExporter exporter(
        [&](const std::vector<Span>& spans) {
          const std::lock_guard lock(mutex);
          sizes.push_back(spans.size());
          return true;
        },
        {.most_waiting = 100, .batch = 10, .delay = std::chrono::seconds(20)});
    for (int i = 0; i < 25; ++i) exporter.add(span("x"));
  }  // sends what waits, at once
  std::size_t all = 0;
  for (const std::size_t size : sizes) {
    EXPECT_LE(size, 10u);
    all += size;
  }
  EXPECT_EQ(all, 25u);
}

TEST(SpanExporter, DropsWhatCannotBeSent) {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  SpanExporter exporter(
      [&](const std::vector<Span>&) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return open; });
        return false;
      },
      {.most_waiting = 10, .batch = 1, .delay = std::chrono::milliseconds(0)});
  for (int i = 0; i < 50; ++i) exporter.add(span("x"));
  EXPECT_GE(exporter.dropped(), 39u);  // ten wait, one is being sent
  {
    const std::lock_guard lock(mutex);
    open = true;
  }
  changed.notify_all();
  while (exporter.dropped() < 50) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(exporter.sent(), 0u);
}

}  // namespace
}  // namespace sdx::serve
