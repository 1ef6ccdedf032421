#pragma once
// A time as interfaces other than OpenAI's write it.

#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <string>

namespace sdx::serve::openai {

// "2026-01-02T03:04:05.123456Z"
inline std::string time_text(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count() % 1'000'000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec, micros);
}

}  // namespace sdx::serve::openai
