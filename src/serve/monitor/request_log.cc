#include "serve/monitor/request_log.h"

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text/json_text.h"

namespace sdx::serve {
namespace {

constexpr std::size_t kMostWaiting = 8u << 20;

// Without spaces, quotes and control characters a value stands as it is.
bool is_plain(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 0x20 && c != '"' && c != '\\' && c < 0x7f; });
}

}  // namespace

std::string iso_time(std::chrono::system_clock::time_point time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  const std::time_t seconds = static_cast<std::time_t>(ms / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec, ms % 1000);
}

LogLine& LogLine::add(std::string_view name, std::string_view value) {
  if (!value.empty()) fields_.push_back({std::string(name), std::string(value), false});
  return *this;
}

LogLine& LogLine::add(std::string_view name, std::int64_t value) {
  fields_.push_back({std::string(name), fmt::format("{}", value), true});
  return *this;
}

LogLine& LogLine::add(std::string_view name, double value) {
  fields_.push_back({std::string(name), fmt::format("{:.3f}", value), true});
  return *this;
}

Log::Log(LogFormat format, std::function<void(std::string_view)> write) : format_(format), write_(std::move(write)) {
  thread_ = std::thread([this] { run(); });
}

Log::~Log() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Log::add(std::string_view level, std::string_view message, const LogLine& line) {
  add(std::chrono::system_clock::now(), level, message, line);
}

void Log::add(std::chrono::system_clock::time_point time, std::string_view level, std::string_view message, const LogLine& line) {
  std::string text;
  if (format_ == LogFormat::json) {
    text = fmt::format("{{\"time\":\"{}\",\"level\":\"{}\",\"message\":{}", iso_time(time), level, json_string(message));
    for (const auto& field : line.fields_) {
      text += fmt::format(",\"{}\":{}", field.name, field.number ? field.value : json_string(field.value));
    }
    text += '}';
  } else {
    text = fmt::format("{} {} {}", iso_time(time), level, message);
    for (const auto& field : line.fields_) {
      text += fmt::format(" {}={}", field.name, field.number || is_plain(field.value) ? field.value : json_string(field.value));
    }
    std::replace(text.begin(), text.end(), '\n', ' ');
  }
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() + text.size() > kMostWaiting) {
      ++dropped_;
      return;
    }
    first = waiting_.empty();
    if (!first) waiting_ += '\n';
    waiting_ += text;
  }
  if (first) wake_.notify_one();
}

void Log::flush() {
  std::unique_lock lock(mutex_);
  written_.wait(lock, [this] { return waiting_.empty() && !writing_; });
}

std::uint64_t Log::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void Log::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::string lines;
    lines.swap(waiting_);
    writing_ = true;
    lock.unlock();
    write_(lines);
    lock.lock();
    writing_ = false;
    written_.notify_all();
  }
}

}  // namespace sdx::serve
