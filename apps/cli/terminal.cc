// Standard output and standard error.

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "base/log.h"
#include "base/quantity.h"
#include "base/system/printable.h"
#include "base/system/terminal.h"
#include "base/text/text_table.h"
#include "base/text/utf8.h"
#include "cli/command.h"

namespace sdx::cli {
namespace {

[[noreturn]] void output_failed() {
  const int error = errno;
  if (error == EPIPE) throw ReaderGone();
  throw OutputError(fmt::format("cannot write to standard output: {}", std::strerror(error)));
}

// Messages that cannot be written to standard error are lost: throwing would end the program where it reports an error, as in
// `sdx … 2>&1 | head`.
void tell(std::string_view text) { static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr)); }

// https://no-color.org
bool has_colours(int fd) {
  const char* off = std::getenv("NO_COLOR");
  return (off == nullptr || *off == '\0') && is_steerable_terminal(fd);
}

std::string coloured(std::string_view text, Colour colour) {
  constexpr int kCodes[] = {1, 2, 31, 32, 33};  // in the order of Colour
  return fmt::format("\033[{}m{}\033[0m", kCodes[static_cast<int>(colour)], text);
}

int columns_of_environment() {
  const char* text = std::getenv("COLUMNS");
  return text == nullptr ? 0 : static_cast<int>(std::clamp(std::strtol(text, nullptr, 10), 0L, 10000L));
}

Talk g_talk = Talk::usual;

// One at a time: the one that was made last. It outlives nothing of main().
std::mutex g_mutex;
Progress* g_progress = nullptr;

bool is_word_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

// `text` with each word coloured wherever it stands by itself.
std::string with_words(std::string text, std::initializer_list<Highlight> words) {
  for (const auto& [word, colour] : words) {
    if (word.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      text = coloured(std::string_view(text).substr(0, end), colour) + text.substr(end);
      continue;
    }
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos;) {
      const std::size_t end = at + word.size();
      const bool alone = (at == 0 || !is_word_letter(text[at - 1])) && (end == text.size() || !is_word_letter(text[end]));
      const std::string shown = alone ? coloured(word, colour) : std::string(word);
      text.replace(at, word.size(), shown);
      at += shown.size();
    }
  }
  return text;
}

void hide_progress() {
  if (g_progress != nullptr) g_progress->hide();
}

void write_output(std::string_view text) {
  {
    const std::lock_guard lock(g_mutex);
    if (g_progress != nullptr && is_terminal(kOutput)) hide_progress();
  }
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) output_failed();
}

}  // namespace

void print(std::string_view text) { write_output(printable(text)); }

void print_coloured(std::string_view text, std::initializer_list<Highlight> words) {
  write_output(has_colours(kOutput) ? with_words(printable(text), words) : printable(text));
}

void print_wrapped(std::string_view text, std::size_t indent) {
  if (!stdout_is_terminal()) return print(text);
  print(wrapped_text(printable(text), indent, static_cast<std::size_t>(terminal_columns())));
}

void print_exact(std::string_view text) {
  if (stdout_is_terminal()) return print(text);
  write_output(text);
}

void flush_output() {
  if (std::fflush(stdout) != 0) output_failed();
}

int terminal_columns() {
  const int other = columns_of_environment();
  return std::max(40, static_cast<int>(columns_of_terminal(kOutput, other > 0 ? static_cast<std::size_t>(other) : 80)));
}

void set_talk(Talk talk) {
  g_talk = talk;
  if (talk == Talk::verbose) log::set_level(log::Level::info);
  if (talk == Talk::debug) log::set_level(log::Level::debug);
}

bool is_quiet() { return g_talk == Talk::quiet; }

namespace {

// A name from a file may hold "\nerror: ": only the first line of a message begins like that.
std::string without_forgeries(std::string text) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos;) {
    ++at;
    for (const char* start : {"error:", "warning:", "note:"}) {
      if (text.compare(at, std::strlen(start), start) == 0) text.insert(at, "  ");
    }
  }
  return text;
}

void say_line(const std::string& line) {
  hide_progress();
  std::string out = without_forgeries(line) + "\n";
  if (has_colours(kErrors)) {
    for (const auto& [word, colour] : {Highlight{"error:", Colour::red}, {"warning:", Colour::yellow}, {"note:", Colour::dim}}) {
      if (out.starts_with(word)) out = coloured(word, colour) + out.substr(word.size());
    }
  }
  tell(out);
}

}  // namespace

void say(std::string_view text) {
  const std::lock_guard lock(g_mutex);
  say_line(printable(text));
}

void note(std::string_view text) {
  constexpr std::size_t kMostRemembered = 1000;
  static std::set<std::string> warned;
  const std::lock_guard lock(g_mutex);
  const std::string line = printable(text);
  const bool warning = line.starts_with("warning: ");
  if (g_talk == Talk::quiet && !warning && !line.starts_with("error: ")) return;
  if (warning && warned.size() < kMostRemembered && !warned.insert(line).second) return;
  say_line(line);
}

void draw(std::string_view text) {
  tell(text);
  std::fflush(stderr);
}

bool stdout_is_terminal() { return is_terminal(kOutput); }

bool stderr_is_terminal() { return is_terminal(kErrors); }

bool stderr_is_steerable() { return is_steerable_terminal(kErrors); }

Console console() {
  Console out;
  out.print = [](std::string_view text) { print(text); };
  out.flush = [] { flush_output(); };
  out.note = [](std::string_view text) { note(text); };
  out.draw = [](std::string_view text) { draw(text); };
  out.terminal = stderr_is_steerable();
  return out;
}

namespace {

// The parts shown beside the bar, the most important first.
std::vector<std::string> progress_parts(std::int64_t done, std::int64_t total, const std::string& unit, double rate) {
  std::vector<std::string> parts{fmt::format("{:3d}%", 100 * done / total)};
  if (unit.empty()) return parts;
  const bool bytes = unit == "B";
  parts.push_back(bytes ? fmt::format("{} of {}", size_text(static_cast<double>(done)), size_text(static_cast<double>(total)))
                        : fmt::format("{} of {} {}", done, total, unit));
  if (rate <= 0) return parts;
  parts.push_back(fmt::format("{} left", duration_text(static_cast<double>(total - done) / rate)));
  parts.push_back(bytes ? size_text(rate) + "/s" : fmt::format("{:.3g}/s", rate));
  return parts;
}

// Fits the label, the parts and a bar into one line, shortening or leaving out what has no room.
std::string progress_line(std::string label, const std::vector<std::string>& parts, std::int64_t done, std::int64_t total,
                          std::size_t columns) {
  constexpr std::size_t kLeastBar = 10, kMostBar = 30;
  std::string text = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string longer = fmt::format("{}{}{}", text, i == 1 ? "  " : ", ", parts[i]);
    if (count_chars(label) + 1 + count_chars(longer) > columns) break;
    text = longer;
  }
  while (!label.empty() && count_chars(label) + 1 + count_chars(text) > columns) {
    label.resize(end_of_chars(label, label.size() - 1));
  }
  const std::size_t used = count_chars(label) + count_chars(text) + 4;
  if (columns < used + kLeastBar) return label + " " + text;
  return fmt::format("{} {} {}", label, progress_bar(done, total, std::min(kMostBar, columns - used)), text);
}

}  // namespace

Progress::Progress(const std::string& label, std::string unit) : label_(printable(label)), unit_(std::move(unit)) {
  const std::lock_guard lock(g_mutex);
  g_progress = this;
}

void Progress::show(std::int64_t done, std::int64_t total) {
  using namespace std::chrono;
  if (g_talk == Talk::quiet || !is_steerable_terminal(kErrors) || total <= 0) return;
  const std::lock_guard lock(g_mutex);
  const auto now = steady_clock::now();
  if (first_ < 0) {
    first_ = done;
    start_ = now;
  }
  if (drawn_ && done < total && now - drawn_at_ < milliseconds(50)) return;
  const double seconds = duration<double>(now - start_).count();
  const double rate = seconds > 0.5 ? static_cast<double>(done - first_) / seconds : 0;
  const std::size_t columns = std::max<std::size_t>(10, columns_of_terminal(kErrors)) - 1;  // the last column may wrap
  done = std::clamp<std::int64_t>(done, 0, total);
  tell("\r\033[K" + progress_line(label_, progress_parts(done, total, unit_, rate), done, total, columns));
  std::fflush(stderr);
  drawn_ = true;
  drawn_at_ = now;
}

void Progress::hide() {
  if (drawn_) tell("\r\033[K");
  drawn_ = false;
}

Progress::~Progress() {
  const std::lock_guard lock(g_mutex);
  hide();
  if (g_progress == this) g_progress = nullptr;
}

}  // namespace sdx::cli
