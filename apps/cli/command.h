#pragma once
// What the subcommands share. Results go to stdout, everything else to stderr.

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/console.h"

namespace sdx::cli {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
// What a server's action returns when it was asked to end: exit code 0, also where a request met a damaged file, because that
// request was answered with the error.
inline constexpr int kServed = -1;

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

// Writes to standard output. Throws OutputError or ReaderGone, now or at the next print() or flush_output(). What would steer a
// terminal is escaped (base/system/printable.h): names and texts of files may hold anything.
void print(std::string_view text);
// Words that have a colour where standard output is a terminal with colours, and NO_COLOR is not set. The word "": the first
// line.
enum class Colour { bold, dim, red, green, yellow };
struct Highlight {
  std::string_view word;
  Colour colour;
};
void print_coloured(std::string_view text, std::initializer_list<Highlight> words);
// Long lines go on in further ones where standard output is a terminal, `indent` columns to the right.
void print_wrapped(std::string_view text, std::size_t indent);
// What the caller asked a model to write: as it is, but escaped where standard output is a terminal.
void print_exact(std::string_view text);
// What was printed is where it belongs. For those who wait for an answer; at the end of a command the program itself sees to it.
void flush_output();
// The width of standard output's terminal; else what COLUMNS says, else 80. At least 40.
int terminal_columns();

// What goes to stderr: only warnings and errors; also notes and progress; also what the engine does; all of that in detail.
enum class Talk { quiet, usual, verbose, debug };
void set_talk(Talk talk);
bool is_quiet();
// A line on stderr, escaped like print(). It begins with "error: ", "warning: " or "note: ", or tells what was done. A warning is
// said once.
void note(std::string_view text);
// The same for lines that were asked for, which --quiet does not silence: a server's log.
void say(std::string_view text);
bool stdout_is_terminal();
bool stderr_is_terminal();
bool stderr_is_steerable();  // a terminal that obeys escape sequences: not TERM=dumb
// On stderr as it is.
void draw(std::string_view text);
// All of these, for a library.
Console console();

// Redraws one line on stderr where that is a terminal (not TERM=dumb), and makes room for what others write there; draws nothing
// in a pipe.
class Progress {
 public:
  // `unit`: what is counted ("pictures"; "B" for bytes), with rate and time left; "": only the share is shown.
  explicit Progress(const std::string& label, std::string unit = "");
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(std::int64_t done, std::int64_t total);
  // Takes the line away until the next show().
  void hide();

 private:
  std::string label_, unit_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), drawn_at_;
  std::int64_t first_ = -1;  // what was done when it began
  bool drawn_ = false;
};

}  // namespace sdx::cli
