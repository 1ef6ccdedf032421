// sdx completion: scripts, and a manual page, made from the commands and options themselves, so that they cannot fall behind.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/suggest.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/manual.h"

namespace sdx::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  sdx completion bash > /etc/bash_completion.d/sdx     or: source <(sdx completion bash)\n"
    "  sdx completion zsh > \"${fpath[1]}/_sdx\"\n"
    "  sdx completion fish > ~/.config/fish/completions/sdx.fish\n"
    "  sdx completion man > sdx.1                           and: man ./sdx.1\n";

struct Word {
  std::string text;         // "--runs", "run"
  std::string description;  // one line
};

std::vector<Word> commands(const CLI::App& app) {
  std::vector<Word> out;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) out.push_back({sub->get_name(), sub->get_description()});
  return out;
}

std::vector<Word> options(const CLI::App& command) {
  std::vector<Word> out;
  for (const CLI::Option* o : command.get_options()) {
    for (const std::string& name : o->get_lnames()) out.push_back({"--" + name, o->get_description()});
    for (const std::string& name : o->get_snames()) out.push_back({"-" + name, o->get_description()});
  }
  return out;
}

std::string texts(const std::vector<Word>& words) {
  std::vector<std::string> out;
  for (const Word& w : words) out.push_back(w.text);
  return join(out, " ");
}

std::string bash(const CLI::App& app) {
  std::string cases;
  for (const CLI::App* sub : app.get_subcommands(nullptr))
    cases += fmt::format("    {}) words=\"{}\" ;;\n", sub->get_name(), texts(options(*sub)));
  return fmt::format(
      "# bash completion for sdx\n"
      "_sdx() {{\n"
      "  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" words=\"\"\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$current\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n"
      "{}"
      "  esac\n"
      "  if [[ \"$current\" == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  fi\n"
      "}}\n"
      "complete -o default -F _sdx sdx\n",
      texts(commands(app)), cases);
}

// Inside single quotes, with the characters that zsh's _arguments and _describe read specially left out.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'' || c == ':' || c == '[' || c == ']' || c == '\\') continue;
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string zsh(const CLI::App& app) {
  std::string list;
  for (const Word& w : commands(app)) list += fmt::format("    '{}:{}'\n", w.text, plain(w.description));
  std::string cases;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    cases += fmt::format("    {})\n      _arguments '*:file:_files'", sub->get_name());
    for (const Word& w : options(*sub)) cases += fmt::format(" \\\n        '{}[{}]'", w.text, plain(w.description));
    cases += " ;;\n";
  }
  return fmt::format(
      "#compdef sdx\n"
      "_sdx() {{\n"
      "  local -a commands=(\n{}  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $command in\n"
      "{}"
      "  esac\n"
      "}}\n"
      "compdef _sdx sdx\n",
      list, cases);
}

std::string fish(const CLI::App& app) {
  std::string out = "# fish completion for sdx\n";
  for (const Word& w : commands(app)) {
    out += fmt::format("complete -c sdx -n __fish_use_subcommand -f -a {} -d '{}'\n", w.text, plain(w.description));
  }
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    for (const CLI::Option* o : sub->get_options()) {
      if (o->get_lnames().empty()) continue;
      out += fmt::format("complete -c sdx -n '__fish_seen_subcommand_from {}' -l {}{} -d '{}'\n", sub->get_name(),
                         o->get_lnames().front(), o->get_snames().empty() ? "" : " -s " + o->get_snames().front(),
                         plain(o->get_description()));
    }
  }
  return out;
}

}  // namespace

void add_completion(const Command& app, Action& action) {
  const Command command = app.add_subcommand("completion", "Print a shell completion script, or the manual page");
  const auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish; man: the manual page")
      ->required()
      ->one_of({"bash", "zsh", "fish", "man"});
  command->footer(kExamples);
  command->callback([shell, &program = app.app(), &action] {
    action = [shell, &program] {
      if (*shell == "man") {
        print(manual_page(program));
      } else {
        print(*shell == "bash" ? bash(program) : *shell == "zsh" ? zsh(program) : fish(program));
      }
      return kOk;
    };
  });
}

}  // namespace sdx::cli
