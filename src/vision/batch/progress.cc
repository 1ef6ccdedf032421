#include "vision/batch/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/quantity.h"

namespace sdx::vision::batch {

using Clock = std::chrono::steady_clock;

namespace {

std::size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

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
  const std::size_t filled = bar * static_cast<std::size_t>(std::min(done, total)) / static_cast<std::size_t>(total);
  return fmt::format("[{}{}] {}", std::string(filled, '#'), std::string(bar - filled, ' '), line);
}

Progress::Progress(const Console& console, std::int64_t total) : console_(console), total_(total), start_(Clock::now()) {}

Progress::~Progress() {
  try {
    clear();
  } catch (...) {  // a terminal that is gone
  }
}

double Progress::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

void Progress::show(std::int64_t done) {
  if (!console_.terminal) return;
  const Clock::time_point now = Clock::now();
  if (drawn_ && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;
  console_.draw("\r\033[K" + progress_line(done, total_, seconds(), terminal_columns()));
}

void Progress::clear() {
  if (drawn_) console_.draw("\r\033[K");
  drawn_ = false;
}

}  // namespace sdx::vision::batch
