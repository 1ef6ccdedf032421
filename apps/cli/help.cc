#include "cli/help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sdx/sdx.hpp>

#include "base/build_id.h"
#include "base/system/control_group.h"
#include "base/system/cpu_features.h"
#include "cli/command.h"
#include "cli/commands.h"

namespace sdx::cli {
namespace {

constexpr std::size_t kHelpColumn = 30;  // where CLI11 begins to explain an option

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// Breaks words into lines. `first` begins the first line; the others are indented by `indent`.
std::string wrapped(std::string first, std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::string line = std::move(first);
  bool empty = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (!empty && columns_of(line) + 1 + columns_of(word) > width) {
      out += line + "\n";
      line = std::string(indent, ' ');
      empty = true;
    }
    if (!std::exchange(empty, false)) line += ' ';
    line += word;
  }
  return out + line + "\n";
}

// Prints a command of the examples: long ones continue on the next line after a backslash, and a remark has a line of its own.
std::string wrapped_command(std::string_view line, std::size_t width) {
  const std::size_t start = line.find_first_not_of(' ');
  const std::size_t gap = line.find("   ", start);
  std::string out;
  std::string_view remark;
  if (gap != std::string_view::npos) {
    remark = line.substr(line.find_first_not_of(' ', gap));
    line = line.substr(0, gap);
  }
  std::string text(start, ' ');
  char quote = '\0';
  std::string word;
  const auto take = [&] {
    const bool first = text.find_first_not_of(' ') == std::string::npos;
    if (!first && columns_of(text) + columns_of(word) + 3 > width) {
      out += text + " \\\n";
      text = std::string(start + 4, ' ') + word;
    } else {
      text += (first ? "" : " ") + word;
    }
    word.clear();
  };
  for (const char c : line.substr(start)) {
    if (c == ' ' && quote == '\0') {
      take();
      continue;
    }
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    }
    word += c;
  }
  take();
  out += text + "\n";
  if (!remark.empty()) out += wrapped(std::string(start + 4, ' '), remark, start + 4, width);
  return out;
}

std::string wrapped_line(std::string_view line, std::size_t width) {
  if (columns_of(line) <= width) return std::string(line) + "\n";
  const bool explained =
      line.size() > kHelpColumn && line.starts_with("  ") && line[kHelpColumn - 1] == ' ' && line[kHelpColumn] != ' ';
  if (explained) return wrapped(std::string(line.substr(0, kHelpColumn)), line.substr(kHelpColumn), kHelpColumn, width);
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  if (indent == 2 && line.find(" sdx ", 1) != std::string_view::npos) return wrapped_command(line, width);
  return wrapped(std::string(indent, ' '), line.substr(indent), indent, width);
}

}  // namespace

const CLI::App* command_named(const CLI::App& app, const std::string& name) {
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name() == name) return sub;
  }
  return nullptr;
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(sub->get_name());
  return names;
}

std::string help_of(const CLI::App& app, int columns) {
  std::string name = app.get_name();
  for (const CLI::App* above = app.get_parent(); above != nullptr; above = above->get_parent())
    name = above->get_name() + " " + name;
  const std::string all = app.get_formatter()->make_help(&app, name, CLI::AppFormatMode::Normal);
  std::string out;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    out += wrapped_line(std::string_view(all).substr(at, end - at), static_cast<std::size_t>(columns));
    at = end + 1;
  }
  return out;
}

void add_common_options(CLI::App& app) {
  const std::vector<CLI::App*> inner = app.get_subcommands([](const CLI::App*) { return true; });
  for (CLI::App* sub : inner) add_common_options(*sub);
  if (!inner.empty()) return;
  const auto names = [&](const char* letter, const char* word) {
    return app.get_option_no_throw(letter) == nullptr ? fmt::format("{},{}", letter, word) : std::string(word);
  };
  if (app.get_option_no_throw("--quiet") == nullptr) {
    app.add_flag_function(
           names("-q", "--quiet"), [](std::int64_t) { set_talk(Talk::quiet); },
           "Print warnings and errors only, no notes and no progress")
        ->group("Messages");
  }
  app.add_flag_function(
         names("-v", "--verbose"), [](std::int64_t n) { set_talk(n > 1 ? Talk::debug : Talk::verbose); },
         "Print what the engine does; twice: in detail")
      ->group("Messages");
  // "--json=yes": CLI11 would convert the word to a number, and end the program where it is none.
  for (CLI::Option* option : app.get_options([](const CLI::Option* o) { return o->get_expected_max() == 0; })) {
    option->disable_flag_override();
  }
}

namespace {

// CLI11 asks for the version where it lets no exception pass.
std::string cpu_sets_or_problem() {
  try {
    return cpu_sets();
  } catch (const Error& e) {
    return e.message();
  }
}

}  // namespace

std::string version_text() {
  return fmt::format("sdx {}\nbuild      {} ({})\nprocessor  {}, {} cores, {}\n", version(), build_id().substr(0, 12), SDX_BUILD,
                     processor_name(), usable_cpus(), cpu_sets_or_problem());
}

void add_help(const Command& app, Action& action) {
  const Command command = app.add_subcommand("help", "Show the help of a command");
  const auto words = std::make_shared<std::vector<std::string>>();
  command->add_option("COMMAND", *words, "The command; default: list all commands");
  command->footer("Examples:\n  sdx help\n  sdx help run\n  sdx help models add\n");
  command->callback([words, &program = app.app(), &action] {
    action = [words, &program] {
      const CLI::App* at = &program;
      std::string above;
      for (const std::string& word : *words) {
        const CLI::App* next = command_named(*at, word);
        above += above.empty() ? word : " " + word;
        if (next == nullptr && names_of_commands(*at).empty()) {
          throw UsageError(fmt::format("unknown command '{}': sdx {} has no further ones", above, at->get_name()));
        }
        if (next == nullptr) throw UsageError(unknown_command(*at, above));
        at = next;
      }
      print(help_of(*at, terminal_columns()));
      return kOk;
    };
  });
}

}  // namespace sdx::cli
