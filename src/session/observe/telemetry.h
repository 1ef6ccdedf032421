#pragma once
// One structured line for every run, for those who watch a service.

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

namespace sdx::session {

// Facts that all runs of a session share.
struct TelemetrySubject {
  std::string runtime;   // "native" or "ort"
  std::string provider;  // "cuda,cpu": those that run nodes, in order of preference
  std::string model;     // path; empty: from memory
};

// Writes lines of JSON. Thread-safe; a line is one write, so that lines of several processes do not mix.
class Telemetry {
 public:
  // "1" or "stderr": standard error; "0": off; anything else: a file, appended to; empty: as the environment variable
  // SDX_TELEMETRY says, off without it. Null when off. Throws Error(io) for a file that cannot be opened.
  static std::unique_ptr<Telemetry> open(const std::string& where);
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

  // `status`: "ok" or the name of an ErrorCode. A line that cannot be written is lost, and the log warns of the first one:
  // telemetry never fails a run.
  void run(const TelemetrySubject& subject, double latency_ms, std::string_view status) const noexcept;

 private:
  explicit Telemetry(int fd, bool owned) : fd_(fd), owned_(owned) {}
  int fd_;
  bool owned_;
  mutable std::atomic<bool> failed_{false};
};

}  // namespace sdx::session
