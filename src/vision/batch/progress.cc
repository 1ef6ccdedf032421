#include "vision/batch/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "base/system/terminal.h"

namespace sdx::vision::batch {

using Clock = std::chrono::steady_clock;

std::string progress_line(std::int64_t done, std::int64_t total, double seconds, std::size_t columns) {
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const std::size_t room = columns > 0 ? columns - 1 : 0;  // a letter in the last column would begin another line
  if (total <= 0) return fmt::format("{} pictures, {:.1f} a second", done, rate).substr(0, room);
  std::string line = fmt::format("{}/{}", done, total);
  if (done > 0) {
    line += fmt::format("  {:.1f} a second, {} left", rate, duration_text(static_cast<double>(total - done) / rate));
  }
  constexpr std::size_t kFrame = 3, kLeast = 5, kMost = 30;  // "[] ", and how long a bar is worth it
  if (line.size() + kFrame + kLeast > room) return line.substr(0, room);
  const std::size_t bar = std::min(kMost, room - line.size() - kFrame);
  return fmt::format("{} {}", progress_bar(done, total, bar), line);
}

Progress::Progress(const Console& console, std::int64_t total) : line_(console), total_(total), start_(Clock::now()) {}

double Progress::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

void Progress::show(std::int64_t done) {
  if (line_.due()) line_.draw(progress_line(done, total_, seconds(), columns_of_terminal(kErrors)));
}

}  // namespace sdx::vision::batch
