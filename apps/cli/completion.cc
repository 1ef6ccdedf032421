// sdx completion: scripts, and a manual page, made from the commands and options themselves, so that they cannot fall behind.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "base/suggest.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/manual.h"
#include "providers/interface/provider.h"

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

// What an option takes, where that is known: "loaded simplified …". Providers and models are looked up by their options' values.
enum class Takes { flag, words, provider, anything };
struct OptionWords {
  std::vector<Word> names;
  Takes takes = Takes::anything;
  std::vector<std::string> words;
};

// "STAGE:{loaded,simplified}" -> its words.
std::vector<std::string> words_of(const std::string& type) {
  std::vector<std::string> out;
  const std::size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return out;
  std::string word;
  for (const char c : type.substr(open + 1, close - open - 1) + ",") {
    if (c == ',') out.push_back(std::exchange(word, {}));
    if (c != ',') word += c;
  }
  return out;
}

std::vector<OptionWords> options(const CLI::App& command) {
  std::vector<OptionWords> out;
  for (const CLI::Option* o : command.get_options()) {
    OptionWords w;
    for (const std::string& name : o->get_lnames()) w.names.push_back({"--" + name, o->get_description()});
    for (const std::string& name : o->get_snames()) w.names.push_back({"-" + name, o->get_description()});
    if (w.names.empty()) continue;
    w.words = words_of(o->get_type_name());
    w.takes = o->get_type_size() == 0                 ? Takes::flag
              : !w.words.empty()                      ? Takes::words
              : o->get_type_name().find("CHAIN") == 0 ? Takes::provider
                                                      : Takes::anything;
    out.push_back(std::move(w));
  }
  return out;
}

// Where a command takes a MODEL, the names that `sdx run NAME` finds.
bool takes_model(const CLI::App& command) {
  for (const CLI::Option* o : command.get_options()) {
    if (o->get_positional() && (o->get_name(true) == "MODEL" || o->get_name(true) == "NAME")) return true;
  }
  return false;
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

std::string bash(const CLI::App& app) {
  std::string words, values;
  for (const auto& [name, sub] : all_commands(app)) {
    std::vector<std::string> all{texts(flat(options(*sub)))};
    words += fmt::format("    '{}') words=\"{}\" inner=\"{}\" models={} ;;\n", name, all.front(), texts(commands(*sub)),
                         takes_model(*sub) ? 1 : 0);
    for (const OptionWords& o : options(*sub)) {
      if (o.takes == Takes::flag || o.takes == Takes::anything) continue;
      for (const Word& w : o.names) {
        values += fmt::format("    '{} {}') values=\"{}\" ;;\n", name, w.text,
                              o.takes == Takes::provider ? "$providers" : join(o.words, " "));
      }
    }
  }
  return fmt::format(
      "# bash completion for sdx\n"
      "_sdx() {{\n"
      "  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" before=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n"
      "  local words=\"\" inner=\"\" values=\"\" models=0 providers=\"{}\"\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$current\"))\n"
      "    return\n"
      "  fi\n"
      "  local command=\"${{COMP_WORDS[1]}}\"\n"
      "  case \"$command\" in\n"
      "    cache|checkpoint|faces|models) [ \"$COMP_CWORD\" -gt 2 ] && command=\"$command ${{COMP_WORDS[2]}}\" ;;\n"
      "  esac\n"
      "  case \"$command\" in\n"
      "{}"
      "  esac\n"
      "  case \"$command $before\" in\n"
      "{}"
      "  esac\n"
      "  if [ -n \"$values\" ]; then\n"
      "    COMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
      "  elif [[ \"$current\" == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  elif [ -n \"$inner\" ]; then\n"
      "    COMPREPLY=($(compgen -W \"$inner\" -- \"$current\"))\n"
      "  elif [ \"$models\" -eq 1 ] && [[ \"$before\" != -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$(sdx models ls --names 2>/dev/null)\" -- \"$current\") $(compgen -f -- \"$current\"))\n"
      "  fi\n"
      "}}\n"
      "complete -o default -o filenames -F _sdx sdx\n",
      join(provider_words(), " "), texts(commands(app)), words, values);
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
    const std::string inner = texts(commands(*sub));
    const std::string first = !inner.empty()      ? fmt::format("1:command:({})", inner)
                              : takes_model(*sub) ? "1:model:_sdx_models"
                                                  : "";
    cases += fmt::format("    {})\n      _arguments{} '*:file:_files'", sub->get_name(), first.empty() ? "" : " '" + first + "'");
    for (const OptionWords& o : options(*sub)) {
      const std::string value = o.takes == Takes::flag       ? ""
                                : o.takes == Takes::words    ? fmt::format(":value:({})", join(o.words, " "))
                                : o.takes == Takes::provider ? fmt::format(":provider:({})", plain(join(provider_words(), " ")))
                                                             : ":value:_files";
      for (const Word& w : o.names) cases += fmt::format(" \\\n        '{}[{}]{}'", w.text, plain(w.description), value);
    }
    cases += " ;;\n";
  }
  return fmt::format(
      "#compdef sdx\n"
      "_sdx_models() {{\n"
      "  local -a names=(${{(f)\"$(sdx models ls --names 2>/dev/null)\"}})\n"
      "  compadd -a names\n"
      "  _files\n"
      "}}\n"
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
    const std::string seen = fmt::format("complete -c sdx -n '__fish_seen_subcommand_from {}'", sub->get_name());
    for (const Word& w : commands(*sub)) out += fmt::format("{} -a {} -d '{}'\n", seen, w.text, plain(w.description));
    if (takes_model(*sub)) out += seen + " -a '(sdx models ls --names 2>/dev/null)'\n";
    for (const OptionWords& o : options(*sub)) {
      std::string line = seen;
      for (const Word& w : o.names) line += w.text.starts_with("--") ? " -l " + w.text.substr(2) : " -s " + w.text.substr(1);
      if (o.takes == Takes::words) line += fmt::format(" -x -a '{}'", join(o.words, " "));
      if (o.takes == Takes::provider) line += fmt::format(" -x -a '{}'", join(provider_words(), " "));
      if (o.takes == Takes::anything) line += " -r";
      out += fmt::format("{} -d '{}'\n", line, plain(o.names.front().description));
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
