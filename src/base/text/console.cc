#include "base/text/console.h"

#include <algorithm>

namespace sdx {

StatusLine::~StatusLine() {
  try {
    clear();
  } catch (...) {  // a terminal that is gone
  }
}

bool StatusLine::due() {
  const auto now = std::chrono::steady_clock::now();
  if (!console_.terminal || (drawn_ && now - last_ < std::chrono::milliseconds(100))) return false;
  last_ = now;
  return true;
}

void StatusLine::draw(std::string_view line) {
  drawn_ = true;
  console_.draw(std::string("\r\033[K").append(line));
}

void StatusLine::clear() {
  if (drawn_) console_.draw("\r\033[K");
  drawn_ = false;
}

std::string progress_bar(std::int64_t done, std::int64_t total, std::size_t width) {
  const auto filled =
      static_cast<std::size_t>(std::clamp<std::int64_t>(done, 0, total)) * width / static_cast<std::size_t>(total);
  return "[" + std::string(filled, '#') + std::string(width - filled, ' ') + "]";
}

}  // namespace sdx
