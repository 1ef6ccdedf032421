#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "base/system/printable.h"

namespace sdx::log {
namespace {

constexpr const char* kNames[] = {"debug", "info", "warning", "error", "off"};

std::mutex g_mutex;
std::function<void(Level, std::string_view)> g_sink;

// Whether SDX_LOG is empty or holds a level.
bool read_level(Level& level) {
  const char* text = std::getenv("SDX_LOG");
  if (text == nullptr || *text == '\0') return true;
  for (int i = 0; i < 5; ++i) {
    if (std::string_view(text) != kNames[i]) continue;
    level = static_cast<Level>(i);
    return true;
  }
  return false;
}

Level start_level() {
  Level level = Level::warning;
  if (!read_level(level)) {
    write(Level::warning,
          fmt::format("SDX_LOG is '{}': expected one of debug, info, warning, error, off", std::getenv("SDX_LOG")));
  }
  return level;
}

std::atomic<Level>& current() {
  static std::atomic<Level> level{start_level()};
  return level;
}

}  // namespace

void set_level(Level level) noexcept { current().store(level, std::memory_order_relaxed); }
Level level() noexcept { return current().load(std::memory_order_relaxed); }

// Exported for the command, which formats errors and warnings in its own way.
SDX_TOOLS_API void set_sink(std::function<void(Level, std::string_view)> sink) {
  const std::lock_guard lock(g_mutex);
  g_sink = std::move(sink);
}

void write(Level at, std::string_view message) {
  const std::lock_guard lock(g_mutex);
  if (g_sink) {
    g_sink(at, message);
    return;
  }
  const std::string line = fmt::format("sdx: {}: {}\n", kNames[static_cast<int>(at)], printable(message));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace sdx::log
