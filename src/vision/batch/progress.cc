#include "vision/batch/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sdx::vision::batch {

using Clock = std::chrono::steady_clock;

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::clamp(std::ceil(seconds), 0.0, 1e9));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
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
  const double rate = seconds() > 0 ? static_cast<double>(done) / seconds() : 0;
  if (total_ <= 0) return console_.draw(fmt::format("\r\033[K{} pictures, {:.1f} a second", done, rate));
  const auto filled = static_cast<std::size_t>(30 * done / total_);
  std::string line = fmt::format("\r\033[K[{}{}] {}/{}", std::string(filled, '#'), std::string(30 - filled, ' '), done, total_);
  if (done > 0) {
    line += fmt::format("  {:.1f} a second, {} left", rate, duration_text(static_cast<double>(total_ - done) / rate));
  }
  console_.draw(line);
}

void Progress::clear() {
  if (drawn_) console_.draw("\r\033[K");
  drawn_ = false;
}

}  // namespace sdx::vision::batch
