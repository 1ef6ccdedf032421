#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <sdx/sdx.hpp>
#include <sstream>

#include "base/error.h"
#include "base/suggest.h"
#include "cli/commands.h"

namespace sdx::cli {

namespace {

[[noreturn]] void output_failed() {
  const int error = errno;
  if (error == EPIPE) throw ReaderGone();
  throw OutputError(fmt::format("cannot write to standard output: {}", std::strerror(error)));
}

}  // namespace

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) output_failed();
}

void flush_output() {
  if (std::fflush(stdout) != 0) output_failed();
}

namespace {

// What cannot be said on standard error is lost: throwing would end the program where it reports an error, as in `sdx … 2>&1 |
// head`.
void tell(std::string_view text) { static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr)); }

}  // namespace

void note(std::string_view text) { tell(fmt::format("{}\n", text)); }

void draw(std::string_view text) {
  tell(text);
  std::fflush(stderr);
}

bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) != 0; }

void Progress::show(int done, int total) {
  if (!stderr_is_terminal() || total <= 0) return;
  const int percent = static_cast<int>(100.0 * done / total);
  if (percent == last_percent_) return;
  last_percent_ = percent;
  drawn_ = true;
  const int filled = percent * 30 / 100;
  tell(fmt::format("\r{} [{}{}] {:3d}%", label_, std::string(static_cast<std::size_t>(filled), '#'),
                   std::string(static_cast<std::size_t>(30 - filled), ' '), percent));
  std::fflush(stderr);
}

Progress::~Progress() {
  if (drawn_) tell("\r\033[K");
}

namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  sdx run model.onnx -i input=@values.json\n"
    "  sdx run resnet50.onnx -i photo.jpg --normalize imagenet --labels classes.txt --softmax\n"
    "  sdx inspect model.onnx\n"
    "  sdx verify model.onnx test_data_set_0\n"
    "Exit codes: 0 ok, 1 failed, 2 wrong usage. `sdx COMMAND --help` shows a command's options.\n";

// CLI11 says only that a word was not expected; a mistyped command deserves a suggestion.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) names.push_back(sub->get_name());
  if (argc < 2 || argv[1][0] == '-') return "";
  for (const std::string& name : names) {
    if (name == argv[1]) return "";
  }
  const std::string near = closest(argv[1], names);
  return fmt::format("unknown command '{}'{}; commands: {}", argv[1], near.empty() ? "" : ", did you mean '" + near + "'?",
                     join(names));
}

int usage_error(const CLI::App& app, const CLI::ParseError& e, int argc, char** argv) {
  const std::string unknown = unknown_command(app, argc, argv);
  note("error: " + (unknown.empty() ? std::string(e.what()) : unknown));
  const auto used = app.get_subcommands();
  note(fmt::format("Run `sdx {}--help` for the options.", used.empty() ? "" : used.front()->get_name() + " "));
  return kUsage;
}

// Some file systems say only when a file is closed that it is full.
void finish_output() {
  flush_output();
  const int copy = ::dup(STDOUT_FILENO);
  if (copy >= 0 && ::close(copy) != 0) output_failed();
}

// As the system ends a program that does not care about closed pipes: shells tell 141.
int end_as_by_pipe() {
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
  return 128 + SIGPIPE;  // where the signal is blocked
}

int guarded(const Action& action) {
  try {
    const int code = action();
    finish_output();
    return code;
  } catch (const ReaderGone&) {
    return end_as_by_pipe();
  } catch (const UsageError& e) {
    note(fmt::format("error: {}", e.what()));
    return kUsage;
  } catch (const Error& e) {
    note(fmt::format("error: {}", e.what()));
  } catch (const std::bad_alloc&) {
    note("error: the machine ran out of memory");
  } catch (const std::exception& e) {
    note(fmt::format("error: {}", e.what()));
  }
  return kFailed;
}

struct Entry {
  std::string_view name;
  void (*add)(const Command&, Action&);
};

#define SDX_LIST_COMMAND(name, function) {name, function},
constexpr Entry kCommands[] = {SDX_COMMANDS(SDX_LIST_COMMAND)};
#undef SDX_LIST_COMMAND

// The options of all commands take longer to set up than a small model to load: only the command that is called gets its own.
// Help, completion and whatever is no command need all of them.
void add_commands(CLI::App& app, Action& action, std::string_view word) {
  const bool one = word != "completion" &&
                   std::any_of(std::begin(kCommands), std::end(kCommands), [&](const Entry& c) { return c.name == word; });
  for (const Entry& c : kCommands) {
    if (!one || c.name == word) c.add(Command(app), action);
  }
}

int run_program(int argc, char** argv) {
  CLI::App app("Sardonyx runs ONNX models on the best hardware a machine has.", "sdx");
  app.set_version_flag("--version", fmt::format("sdx {}", version()));
  app.footer(kExamples);
  app.require_subcommand(1);
  Action action;
  add_commands(app, action, argc > 1 ? argv[1] : "");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return guarded([&] {
      std::ostringstream text;
      const int code = app.exit(e, text, text);  // --help, --version
      print(text.str());
      return code;
    });
  } catch (const CLI::ParseError& e) {
    if (argc == 1) {
      tell(app.help());
      return kUsage;
    }
    return usage_error(app, e, argc, argv);
  }
  return guarded(action);
}

}  // namespace
}  // namespace sdx::cli

int main(int argc, char** argv) {
  // print() finds out, so that what has begun is cleaned up; for standard error it does not matter.
  std::signal(SIGPIPE, SIG_IGN);
  return sdx::cli::run_program(argc, argv);
}
