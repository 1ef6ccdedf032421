#pragma once
// Diagnostics for people: stderr by default. Results never go here.

#include <fmt/format.h>

#include <functional>
#include <string_view>
#include <utility>

#include "base/tools_api.h"

namespace sdx::log {

enum class Level { debug, info, warning, error, off };

// Messages below this level are dropped. Default: warning; the environment variable SDX_LOG (debug, info, warning, error,
// off) sets the start value. Thread-safe.
SDX_TOOLS_API void set_level(Level level) noexcept;
SDX_TOOLS_API Level level() noexcept;

// Sets the receiver of messages; null restores stderr. The sink is called from any thread, one call at a time.
void set_sink(std::function<void(Level, std::string_view)> sink);

SDX_TOOLS_API void write(Level level, std::string_view message);

template <class... Args>
void emit(Level at, fmt::format_string<Args...> format, Args&&... args) {
  if (at >= level()) write(at, fmt::vformat(format, fmt::make_format_args(args...)));
}
template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  emit(Level::debug, format, std::forward<Args>(args)...);
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  emit(Level::info, format, std::forward<Args>(args)...);
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  emit(Level::warning, format, std::forward<Args>(args)...);
}

}  // namespace sdx::log
