#include "session/observe/telemetry.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "base/system/file.h"
#include "base/system/terminal.h"
#include "base/text/json_text.h"

namespace sdx::session {
std::unique_ptr<Telemetry> Telemetry::open(const std::string& where) {
  std::string target = where;
  if (target.empty()) {
    const char* environment = std::getenv("SDX_TELEMETRY");
    target = environment != nullptr ? environment : "";
  }
  if (target.empty() || target == "0") return nullptr;
  if (target == "1" || target == "stderr") return std::unique_ptr<Telemetry>(new Telemetry(kErrors, false));
  File file = File::open(path_of(target), File::For::appending, 0644);
  if (!file) fail(ErrorCode::io, "cannot open the telemetry file '{}': {}", target, std::strerror(errno));
  return std::unique_ptr<Telemetry>(new Telemetry(file.release(), true));
}

Telemetry::~Telemetry() {
  if (owned_) File(fd_).close();
}

void Telemetry::run(const TelemetrySubject& subject, double latency_ms, std::string_view status) const noexcept {
  try {
    const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    const std::string line = fmt::format(
        "{{\"event\":\"run\",\"time\":{:.3f},\"runtime\":{},\"provider\":{},\"model\":{},\"latency_ms\":{:.4f},\"status\":\"{}\"}"
        "}\n",
        now, json_string(subject.runtime), json_string(subject.provider), json_string(subject.model), latency_ms, status);
    if (!write_all(fd_, line.data(), line.size()) && !failed_.exchange(true)) {
      log::warning("telemetry is lost: {}", std::strerror(errno));
    }
  } catch (...) {  // out of memory: the run itself is worth more than its line
  }
}

}  // namespace sdx::session
