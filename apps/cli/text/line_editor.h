#pragma once
// Lines that a person types.

#include <csignal>
#include <optional>
#include <string>

namespace sdx::cli {

// Reads lines, with editing and history where standard input is a terminal and libedit is installed. libedit is loaded on first
// use.
class LineEditor {
 public:
  // `interrupted`: a flag that a signal handler sets to make read() return; it must outlive the editor. There may be one editor
  // at a time.
  explicit LineEditor(const volatile std::sig_atomic_t& interrupted);
  // Nothing at the end of the input, and where a signal came instead of a line.
  std::optional<std::string> read(const char* prompt);
  bool terminal() const { return terminal_; }

 private:
  // Functions of readline's interface, which libedit provides.
  char* (*readline_)(const char*) = nullptr;
  int (*add_history_)(const char*) = nullptr;
  bool terminal_ = false;
};

}  // namespace sdx::cli
