#pragma once
// Lines that a person types.

#include <csignal>
#include <optional>
#include <string>

namespace sdx::cli {

// With editing and history where standard input is a terminal and libedit is installed; it is loaded when used.
class LineEditor {
 public:
  // `interrupted`: what a signal handler sets so that read() returns; outlives the editor. One editor at a time.
  explicit LineEditor(const volatile std::sig_atomic_t& interrupted);
  // Nothing at the end of the input, and where a signal came instead of a line.
  std::optional<std::string> read(const char* prompt);
  bool terminal() const { return terminal_; }

 private:
  // Of readline's interface, which libedit has.
  char* (*readline_)(const char*) = nullptr;
  int (*add_history_)(const char*) = nullptr;
  bool terminal_ = false;
};

}  // namespace sdx::cli
