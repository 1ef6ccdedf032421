// sdx completion: scripts, and a manual page, made from the commands and options themselves, so that they cannot fall behind.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "base/suggest.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/manual.h"
#include "providers/interface/provider.h"

namespace sdx::cli {
namespace {

constexpr const char* kCompletionExamples =
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

// The kind of value that an option or a command takes, if it is known. Providers and models are looked up by their names.
enum class Takes { nothing, words, provider, model, model_name, anything };
struct OptionWords {
  std::vector<Word> names;
  Takes takes = Takes::anything;
  std::vector<std::string> words;
};

std::vector<OptionWords> options(const CLI::App& command) {
  std::vector<OptionWords> out;
  for (const CLI::Option* o : command.get_options()) {
    OptionWords w;
    for (const std::string& name : o->get_lnames()) w.names.push_back({"--" + name, o->get_description()});
    for (const std::string& name : o->get_snames()) w.names.push_back({"-" + name, o->get_description()});
    if (w.names.empty()) continue;
    w.words = words_of(*o);
    const bool flag = o->get_type_size() == 0 || o->get_items_expected_max() == 0;
    w.takes = flag                                    ? Takes::nothing
              : !w.words.empty()                      ? Takes::words
              : o->get_type_name().find("CHAIN") == 0 ? Takes::provider
                                                      : Takes::anything;
    out.push_back(std::move(w));
  }
  return out;
}

// The positional arguments of a command. MODEL may also be a file; NAME must be a listed model, except for `add`.
OptionWords positional(const CLI::App& program, const CLI::App& command) {
  OptionWords w;
  for (const CLI::Option* o : command.get_options()) {
    const std::string name = o->get_positional() ? o->get_name(true) : "";
    if (name == "NAME" && command.get_name() == "add") return w;  // a new one, and a file
    if (name == "MODEL" || name == "NAME") w.takes = name == "MODEL" ? Takes::model : Takes::model_name;
    if (name == "COMMAND") w.words = names_of_commands(program);
    if (!name.empty() && w.words.empty()) w.words = words_of(*o);
    if (!w.words.empty()) w.takes = Takes::words;
    if (w.takes != Takes::anything) return w;
  }
  return w;
}

// The commands and those below them, by their words: "models add".
std::vector<std::pair<std::string, const CLI::App*>> all_commands(const CLI::App& app, const std::string& above = "") {
  std::vector<std::pair<std::string, const CLI::App*>> out;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string name = above + sub->get_name();
    out.emplace_back(name, sub);
    for (auto& inner : all_commands(*sub, name + " ")) out.push_back(std::move(inner));
  }
  return out;
}

std::vector<std::string> provider_words() {
  std::vector<std::string> out{"auto", "gpu", "npu", "ort:cpu"};
  for (const ProviderName& p : provider_names()) out.push_back(p.name);
  return out;
}

std::string texts(const std::vector<Word>& words) {
  std::vector<std::string> out;
  for (const Word& w : words) out.push_back(w.text);
  return join(out, " ");
}

std::vector<Word> flat(const std::vector<OptionWords>& options) {
  std::vector<Word> out;
  for (const OptionWords& o : options) out.insert(out.end(), o.names.begin(), o.names.end());
  return out;
}

// "cache|models": the commands that have further ones.
std::string commands_with_inner(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    if (!commands(*sub).empty()) out.push_back(sub->get_name());
  }
  return join(out, "|");
}

std::string bash(const CLI::App& app) {
  std::string words, values;
  for (const auto& [name, sub] : all_commands(app)) {
    const OptionWords behind = positional(app, *sub);
    const std::string inner = behind.takes == Takes::words ? join(behind.words, " ") : texts(commands(*sub));
    words += fmt::format("    '{}') words=\"{}\" inner=\"{}\" models={} ;;\n", name, texts(flat(options(*sub))), inner,
                         behind.takes == Takes::model        ? 1
                         : behind.takes == Takes::model_name ? 2
                                                             : 0);
    for (const OptionWords& o : options(*sub)) {
      if (o.takes != Takes::words && o.takes != Takes::provider) continue;
      for (const Word& w : o.names) {
        const bool chain = o.takes == Takes::provider;
        values += fmt::format("    '{} {}') values=\"{}\"{} ;;\n", name, w.text, chain ? "$providers" : join(o.words, " "),
                              chain ? " chain=1" : "");
      }
    }
  }
  return fmt::format(
      "# bash completion for sdx\n"
      "_sdx() {{\n"
      "  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" before=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n"
      "  local words=\"\" inner=\"\" values=\"\" models=0 chain=0 first=\"\" providers=\"{}\"\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$current\"))\n"
      "    return\n"
      "  fi\n"
      "  local command=\"${{COMP_WORDS[1]}}\"\n"
      "  case \"$command\" in\n"
      "    {}) [ \"$COMP_CWORD\" -gt 2 ] && command=\"$command ${{COMP_WORDS[2]}}\" ;;\n"
      "  esac\n"
      "  case \"$command\" in\n"
      "{}"
      "  esac\n"
      "  case \"$command $before\" in\n"
      "{}"
      "  esac\n"
      "  if [ \"$chain\" -eq 1 ]; then\n"
      "    [[ \"$current\" == *,* ]] && first=\"${{current%,*}},\"\n"
      "    COMPREPLY=($(compgen -P \"$first\" -W \"$values\" -- \"${{current##*,}}\"))\n"
      "  elif [ -n \"$values\" ]; then\n"
      "    COMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
      "  elif [[ \"$current\" == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  elif [ -n \"$inner\" ]; then\n"
      "    COMPREPLY=($(compgen -W \"$inner\" -- \"$current\"))\n"
      "  elif [ \"$models\" -gt 0 ] && [[ \"$before\" != -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$(sdx models ls --names 2>/dev/null)\" -- \"$current\"))\n"
      "    if [ \"$models\" -eq 2 ]; then compopt +o default 2>/dev/null; else COMPREPLY+=($(compgen -f -- \"$current\")); fi\n"
      "  fi\n"
      "}}\n"
      "complete -o default -o filenames -F _sdx sdx\n",
      join(provider_words(), " "), texts(commands(app)), commands_with_inner(app), words, values);
}

// Inside single quotes; `escaped`: characters that mean something to zsh's _arguments and _describe.
std::string quoted(const std::string& text, std::string_view escaped, std::string_view apostrophe) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += apostrophe;
      continue;
    }
    if (escaped.find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}
std::string zsh_text(const std::string& text) { return quoted(text, ":[]\\", "'\\''"); }
std::string fish_text(const std::string& text) { return quoted(text, "\\", "\\'"); }

std::string zsh_arguments(const CLI::App& app, const CLI::App& command) {
  const OptionWords behind = positional(app, command);
  const std::string first = !commands(command).empty()          ? fmt::format("1:command:({})", texts(commands(command)))
                            : behind.takes == Takes::words      ? fmt::format("1:word:({})", join(behind.words, " "))
                            : behind.takes == Takes::model      ? "1:model:_sdx_models"
                            : behind.takes == Takes::model_name ? "1:name:_sdx_names"
                                                                : "";
  std::string out = fmt::format("_arguments{} '*:file:_files'", first.empty() ? "" : " '" + first + "'");
  for (const OptionWords& o : options(command)) {
    const std::string value = o.takes == Takes::nothing    ? ""
                              : o.takes == Takes::words    ? fmt::format(":value:({})", join(o.words, " "))
                              : o.takes == Takes::provider ? ":chain:_sdx_chain"
                                                           : ":value:_files";
    for (const Word& w : o.names) out += fmt::format(" \\\n        '{}[{}]{}'", w.text, zsh_text(w.description), value);
  }
  return out;
}

std::string zsh(const CLI::App& app) {
  std::string list;
  for (const Word& w : commands(app)) list += fmt::format("    '{}:{}'\n", w.text, zsh_text(w.description));
  std::string cases;
  for (const auto& [name, sub] : all_commands(app))
    cases += fmt::format("    '{}')\n      {} ;;\n", name, zsh_arguments(app, *sub));
  return fmt::format(
      "#compdef sdx\n"
      "_sdx_names() {{\n"
      "  local -a names=(${{(f)\"$(sdx models ls --names 2>/dev/null)\"}})\n"
      "  compadd -a names\n"
      "}}\n"
      "_sdx_models() {{\n"
      "  _sdx_names\n"
      "  _files\n"
      "}}\n"
      "_sdx_chain() {{ _sequence compadd - {} }}\n"
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
      "    {})\n"
      "      if (( CURRENT > 2 )); then\n"
      "        command=\"$command $words[2]\"\n"
      "        shift words\n"
      "        (( CURRENT-- ))\n"
      "      fi ;;\n"
      "  esac\n"
      "  case $command in\n"
      "{}"
      "  esac\n"
      "}}\n"
      "compdef _sdx sdx\n",
      join(provider_words(), " "), list, commands_with_inner(app), cases);
}

std::string fish(const CLI::App& app) {
  std::string out = fmt::format(
      "# fish completion for sdx\n"
      "function __sdx_chain\n"
      "  set -l before (string match -r '^.*,' -- (commandline -ct))\n"
      "  for provider in {}\n"
      "    echo $before$provider\n"
      "  end\n"
      "end\n"
      // Whether the command line begins with these words: `models ls`, `cache ls` and `ls` are three commands.
      "function __sdx_in\n"
      "  set -l words (commandline -opc)\n"
      "  set -e words[1]\n"
      "  for at in (seq (count $argv))\n"
      "    test \"$words[$at]\" = \"$argv[$at]\"; or return 1\n"
      "  end\n"
      "end\n",
      join(provider_words(), " "));
  for (const Word& w : commands(app)) {
    out += fmt::format("complete -c sdx -n __fish_use_subcommand -f -a {} -d '{}'\n", w.text, fish_text(w.description));
  }
  for (const auto& [name, sub] : all_commands(app)) {
    const std::string seen = fmt::format("complete -c sdx -n '__sdx_in {}'", name);
    const std::string none =
        fmt::format("complete -c sdx -n '__sdx_in {}; and not __fish_seen_subcommand_from {}'", name, texts(commands(*sub)));
    for (const Word& w : commands(*sub)) out += fmt::format("{} -f -a {} -d '{}'\n", none, w.text, fish_text(w.description));
    if (!commands(*sub).empty()) continue;  // its options are those of each further one
    const OptionWords behind = positional(app, *sub);
    if (behind.takes == Takes::words) out += fmt::format("{} -f -a '{}'\n", seen, join(behind.words, " "));
    if (behind.takes == Takes::model || behind.takes == Takes::model_name) {
      out += fmt::format("{}{} -a '(sdx models ls --names 2>/dev/null)'\n", seen, behind.takes == Takes::model ? "" : " -f");
    }
    for (const OptionWords& o : options(*sub)) {
      std::string line = seen;
      for (const Word& w : o.names) line += w.text.starts_with("--") ? " -l " + w.text.substr(2) : " -s " + w.text.substr(1);
      if (o.takes == Takes::words) line += fmt::format(" -x -a '{}'", join(o.words, " "));
      if (o.takes == Takes::provider) line += " -x -a '(__sdx_chain)'";
      if (o.takes == Takes::anything) line += " -r";
      out += fmt::format("{} -d '{}'\n", line, fish_text(o.names.front().description));
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
  command->footer(kCompletionExamples);
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
