#pragma once
// What the subcommands share. Results go to stdout, everything else to stderr.

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sdx::cli {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

// Something is wrong with the command line itself: exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What the chosen subcommand will do, set while the command line is parsed; its result is the exit code.
using Action = std::function<int()>;

// Results cannot be written where they belong: whatever else the command does is of no use. Not an Error, which loops over
// samples take for the failure of one.
struct OutputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Whoever reads standard output has seen enough: the program ends quietly.
struct ReaderGone : std::exception {};

// Writes to standard output. Throws OutputError or ReaderGone, now or at the next print() or flush_output().
void print(std::string_view text);
// What was printed is where it belongs. For those who wait for an answer; at the end of a command the program itself sees to it.
void flush_output();
// A line on stderr.
void note(std::string_view text);
bool stderr_is_terminal();
// On stderr as it is.
void draw(std::string_view text);

// Redraws one line on stderr where that is a terminal; draws nothing in a pipe.
class Progress {
 public:
  explicit Progress(std::string label) : label_(std::move(label)) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(int done, int total);

 private:
  std::string label_;
  bool drawn_ = false;
  int last_percent_ = -1;
};

}  // namespace sdx::cli
