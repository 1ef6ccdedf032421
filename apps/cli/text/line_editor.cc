#include "cli/text/line_editor.h"

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string_view>

#include "base/system/dynlib.h"
#include "base/system/files/input.h"
#include "base/system/processes/signals.h"
#include "base/system/terminal.h"
#include "cli/command.h"

namespace sdx::cli {

namespace {

// libedit continues reading after a signal. It calls this hook while it waits for a key, and returns once the hook is removed.
int (**event_hook)() = nullptr;

int wait_for_key() {
  const InputState keys = wait_for_input(kInput, 100);  // not without end: the signal may come just before it
  if (break_seen() || keys == InputState::ended) *event_hook = nullptr;
  return 0;
}

}  // namespace

LineEditor::LineEditor() : terminal_(is_terminal(kInput)) {
  if (!terminal_ || !is_steerable_terminal(kOutput)) return;
  for (const char* name : {"libedit.so.2", "libedit.so.0", "libedit.so"}) {
    std::string why;
    const auto library = DynamicLibrary::open_for_good(name, why);
    if (library == nullptr) continue;
    readline_ = reinterpret_cast<char* (*)(const char*)>(library->symbol("readline"));
    add_history_ = reinterpret_cast<int (*)(const char*)>(library->symbol("add_history"));
    event_hook = static_cast<int (**)()>(library->symbol("rl_event_hook"));
    return;
  }
}

std::optional<std::string> LineEditor::read(const char* prompt) {
  if (readline_ != nullptr) {
    if (event_hook != nullptr) *event_hook = &wait_for_key;
    const std::unique_ptr<char, decltype(&std::free)> typed(readline_(prompt), &std::free);
    if (!typed) return std::nullopt;
    if (add_history_ != nullptr && *typed != '\0') add_history_(typed.get());
    return std::string(typed.get());
  }
  if (terminal_) {
    draw(prompt);
    return line_of_terminal();
  }
  std::string line;
  if (!std::getline(std::cin, line)) {
    if (!std::cin.eof()) std::cin.clear(), clearerr(stdin);
    return std::nullopt;
  }
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

}  // namespace sdx::cli
