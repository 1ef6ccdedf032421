#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <sdx/error.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/system/mapped_file.h"
#include "base/system/terminal.h"
#include "cli/commands.h"
#include "cli/help.h"

namespace sdx::cli {

void leave_out(const Command&, Action&) {}

namespace {

constexpr const char* kMainExamples =
    "Examples:\n"
    "  sdx run model.onnx -i input=@values.json\n"
    "  sdx run resnet50.onnx -i photo.jpg --normalize imagenet --labels classes.txt --softmax\n"
    "  sdx inspect model.onnx\n"
    "  sdx verify model.onnx test_data_set_0\n"
    "Exit codes: 0 ok, 1 failed, 2 wrong usage. `sdx COMMAND --help` shows a command's options.\n";

int usage_error(const CLI::App& app, const CLI::ParseError& e, int argc, char** argv) {
  note("error: " + usage_message(app, e, argc, argv));
  std::string command;
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    command += at->get_name() + " ";
  }
  say(fmt::format("Run `sdx {}--help` for the options.", command));
  return kUsage;
}

// Some file systems say only when a file is closed that it is full.
void finish_output() {
  flush_output();
  if (!output_arrived()) throw OutputError(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

int guarded(const Action& action) {
  try {
    const int code = action();
    if (code != kServed) MappedFile::check_none_damaged();
    finish_output();
    return code == kServed ? kOk : code;
  } catch (const ReaderGone&) {
    return end_by_closed_pipe();
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

bool is_left_out(std::string_view word) {
  return std::any_of(std::begin(kCommands), std::end(kCommands),
                     [&](const Entry& c) { return c.name == word && c.add == &leave_out; });
}

// The options of all commands take longer to set up than a small model to load: only the command that is called gets its own.
// Help, completion and whatever is no command need all of them.
void add_commands(CLI::App& app, Action& action, std::string_view word) {
  const bool one = word != "completion" && word != "help" &&
                   std::any_of(std::begin(kCommands), std::end(kCommands), [&](const Entry& c) { return c.name == word; });
  for (const Entry& c : kCommands) {
    if (!one || c.name == word) c.add(Command(app), action);
  }
  for (CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) add_common_options(*sub);
}

int run_program(int argc, char** argv) {
  CLI::App app("Sardonyx runs ONNX models on the best hardware a machine has.", "sdx");
  app.set_version_flag(
      "-V,--version", [] { return version_text(); }, "Version, build and processor");
  app.allow_windows_style_options(false);  // on Windows CLI11 takes /model.onnx for an option
  app.footer(kMainExamples);
  app.require_subcommand(1);
  if (argc > 1 && is_left_out(argv[1])) {
    note(fmt::format(
        "error: this build has no `sdx {}`; CMake builds all commands with -DSDX_ALL_COMMANDS=ON, as `make build` does",
        argv[1]));
    return kUsage;
  }
  Action action;
  add_commands(app, action, argc > 1 ? argv[1] : "");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return guarded([&] {
      const CLI::App* at = &app;
      while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
      print(help_of(*at, terminal_columns()));
      return kOk;
    });
  } catch (const CLI::CallForVersion& e) {
    return guarded([&] {
      print(e.what());
      return kOk;
    });
  } catch (const CLI::ParseError& e) {
    if (argc == 1) {
      say(help_of(app, terminal_columns()));
      return kUsage;
    }
    return usage_error(app, e, argc, argv);
  }
  return guarded(action);
}

}  // namespace
}  // namespace sdx::cli

int main(int argc, char** argv) {
  // print() notices a closed pipe itself, so that unfinished work is cleaned up; for standard error it does not matter.
  // Writing beyond the process's limit of file sizes fails as on a full disk, and unfinished files are cleaned up.
  sdx::survive_failing_writes();
  sdx::prepare_terminal();
  sdx::survive_mapped_faults();
  sdx::log::set_sink([](sdx::log::Level level, std::string_view message) {
    constexpr const char* kStarts[] = {"debug: ", "info: ", "warning: ", "error: "};  // in the order of Level
    const std::string line = std::string(kStarts[static_cast<int>(level)]).append(message);
    level < sdx::log::Level::warning ? sdx::cli::say(line) : sdx::cli::note(line);
  });
  return sdx::cli::run_program(argc, argv);
}
