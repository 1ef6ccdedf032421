#pragma once
// The output of a library of the command while it works.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/tools_api.h"

namespace sdx {

// The destinations of results and messages. Called by one thread alone.
struct Console {
  std::function<void(std::string_view)> print;  // to standard output; its exceptions end the work
  std::function<void()> flush;                  // returns when all output has been written
  std::function<void(std::string_view)> note;   // a line on standard error
  std::function<void(std::string_view)> draw;   // on standard error as it is; for a terminal
  bool terminal = false;                        // standard error is one that obeys escape sequences
};

// A line on a terminal that is drawn anew; nothing elsewhere.
class SDX_TOOLS_API StatusLine {
 public:
  explicit StatusLine(const Console& console) : console_(console) {}
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool due();  // there is a terminal, and it has not been asked for a tenth of a second
  void draw(std::string_view line);
  void clear();  // before something else is written

 private:
  const Console& console_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

// "[####    ]" with `width` letters between the brackets.
SDX_TOOLS_API std::string progress_bar(std::int64_t done, std::int64_t total, std::size_t width);

}  // namespace sdx
