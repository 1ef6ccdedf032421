#pragma once
// Lines that a person types.

#include <optional>
#include <string>

namespace sdx::cli {

// Reads lines, with editing and history where standard input is a terminal and libedit is installed. libedit is loaded on first
// use.
class LineEditor {
 public:
  // One at a time.
  LineEditor();
  // Nothing at the end of the input, and where Ctrl-C came instead of a line (catch_break()).
  std::optional<std::string> read(const char* prompt);
  bool terminal() const { return terminal_; }

 private:
  // Functions of readline's interface, which libedit provides.
  char* (*readline_)(const char*) = nullptr;
  int (*add_history_)(const char*) = nullptr;
  bool terminal_ = false;
};

}  // namespace sdx::cli
