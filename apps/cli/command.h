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
// A server's action returns this when it was asked to end: exit code 0. A request that met a damaged file does not change it,
// because that request was answered with the error.
inline constexpr int kServed = -1;

// Something is wrong with the command line itself: exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What the chosen subcommand will do, set while the command line is parsed; its result is the exit code.
using Action = std::function<int()>;

// Thrown when results cannot be written to their destination, which makes the rest of the command pointless. It is no Error,
// because loops over samples would take an Error for the failure of one sample.
struct OutputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Whoever reads standard output has seen enough: the program ends quietly.
struct ReaderGone : std::exception {};

// Writes to standard output. Throws OutputError or ReaderGone, at once or at the next print() or flush_output(). Names and texts
// of files may hold anything, so characters that would steer a terminal are escaped (base/system/printable.h).
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
// Prints text that a model wrote at the caller's request: unchanged, but escaped where standard output is a terminal.
void print_exact(std::string_view text);
// Returns when everything printed has reached its destination. For commands whose reader waits for an answer; at the end of a
// command the program itself calls it.
void flush_output();
// The width of standard output's terminal; else what COLUMNS says, else 80. At least 40.
int terminal_columns();

// Levels of output on stderr: warnings and errors only; notes and progress, too; what the engine does, too; all of that in
// detail.
enum class Talk { quiet, usual, verbose, debug };
void set_talk(Talk talk);
bool is_quiet();
// Writes a line to stderr, escaped like print(). It begins with "error: ", "warning: " or "note: ", or reports what was done.
// Each warning is written once.
void note(std::string_view text);
// The same for requested lines, which --quiet does not silence: a server's log.
void say(std::string_view text);
bool stdout_is_terminal();
bool stderr_is_terminal();
bool stderr_is_steerable();  // a terminal that obeys escape sequences: not TERM=dumb
// Writes to stderr, unescaped.
void draw(std::string_view text);
// All of these, for a library.
Console console();

// Redraws one line on stderr if that is a terminal (not TERM=dumb), and makes room for other output there; draws nothing in a
// pipe.
class Progress {
 public:
  // `unit`: the name of what is counted ("pictures"; "B" for bytes). With a unit, rate and remaining time are shown; with "",
  // only the share.
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
