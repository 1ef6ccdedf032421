#pragma once
// Sizes and times as people write them.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/tools_api.h"

namespace sdx {

// "512MB" (powers of 1000), "2GiB" or "2G" (of 1024), "1000000": bytes. nullopt: no size, or none below 1e18.
SDX_TOOLS_API std::optional<std::uint64_t> size_from_text(std::string_view text);

// "30" or "2.5s" seconds, "500ms", "2m" or "2min" minutes. nullopt: no time, or none up to 1e12 ms.
SDX_TOOLS_API std::optional<std::chrono::milliseconds> time_from_text(std::string_view text);

// "12 s", "4 min 10 s", "2 h 5 min": an estimate of remaining time, for which fractions mean nothing.
SDX_TOOLS_API std::string duration_text(double seconds);
// "450 ms", "2.1 s", "3 min 20 s": a time that was measured.
SDX_TOOLS_API std::string time_text(double seconds);
// "831 B", "1.2 MB": powers of 1000.
SDX_TOOLS_API std::string size_text(double bytes);

}  // namespace sdx
