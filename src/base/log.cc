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

Level start_level() {
  const char* text = std::getenv("SDX_LOG");
  for (int i = 0; text != nullptr && i < 5; ++i) {
    if (std::string_view(text) == kNames[i]) return static_cast<Level>(i);
  }
  return Level::warning;
}

std::atomic<Level>& current() {
  static std::atomic<Level> level{start_level()};
  return level;
}

std::mutex g_mutex;
std::function<void(Level, std::string_view)> g_sink;

}  // namespace

void set_level(Level level) noexcept { current().store(level, std::memory_order_relaxed); }
Level level() noexcept { return current().load(std::memory_order_relaxed); }

// For the command, which has words of its own for errors and warnings.
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
