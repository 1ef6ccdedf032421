#pragma once
// A line for each request, and for each event of the server: text or JSON.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sdx::serve {

enum class LogFormat { text, json };

// The parts of a line, in order; empty texts are left out.
class LogLine {
 public:
  LogLine& add(std::string_view name, std::string_view value);
  LogLine& add(std::string_view name, std::int64_t value);
  LogLine& add(std::string_view name, double value);  // with three digits behind the point

 private:
  friend class Log;
  struct Field {
    std::string name, value;
    bool number = false;
  };
  std::vector<Field> fields_;
};

// Thread-safe. A separate thread writes the lines, so a slow reader of the log delays nobody.
class Log {
 public:
  // `write` takes one or more whole lines, without the last newline.
  Log(LogFormat format, std::function<void(std::string_view lines)> write);
  ~Log();  // writes what is left
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // 2026-01-02T03:04:05.678Z info message name=value "name=two words"
  void add(std::string_view level, std::string_view message, const LogLine& line = {});
  void add(std::chrono::system_clock::time_point time, std::string_view level, std::string_view message,
           const LogLine& line = {});
  // Returns when all that was added is written.
  void flush();
  std::uint64_t dropped() const;  // lines, because too many waited

 private:
  void run();

  const LogFormat format_;
  const std::function<void(std::string_view)> write_;
  mutable std::mutex mutex_;
  std::condition_variable wake_, written_;
  std::string waiting_;
  bool ending_ = false, writing_ = false;
  std::uint64_t dropped_ = 0;
  std::thread thread_;
};

// "2026-01-02T03:04:05.678Z"
std::string iso_time(std::chrono::system_clock::time_point time);

}  // namespace sdx::serve
