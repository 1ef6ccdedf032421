// Error messages for command lines.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/suggest.h"
#include "cli/help.h"

namespace sdx::cli {
namespace {

std::string suggestion(const std::string& near) { return near.empty() ? "" : ", did you mean '" + near + "'?"; }

// "clr" is short for "clear".
bool is_short_for(std::string_view word, std::string_view name) {
  if (word.size() < 2 || name.empty() || word[0] != name[0]) return false;
  std::size_t at = 0;
  for (const char c : name) at += at < word.size() && word[at] == c ? 1 : 0;
  return at == word.size();
}

// A typing error, a longer or a shorter word for the same ("benchmark", "ver"), or an option's name without its dashes.
std::string command_meant(const CLI::App& app, const std::string& word) {
  const std::vector<std::string> names = names_of_commands(app);
  if (app.get_option_no_throw("--" + word) != nullptr) return "--" + word;
  if (std::string near = closest(word, names); !near.empty()) return near;
  for (const std::string& name : names) {
    if (name.size() > 2 && word.starts_with(name)) return name;
  }
  const auto candidate = std::find_if(names.begin(), names.end(), [&](const std::string& n) { return is_short_for(word, n); });
  return candidate == names.end() ? "" : *candidate;
}

std::vector<std::string> names_of_options(const CLI::App& app, bool letters) {
  std::vector<std::string> names;
  for (const CLI::Option* o : app.get_options()) {
    for (const std::string& n : o->get_lnames()) names.push_back("--" + n);
    for (const std::string& n : o->get_snames()) {
      if (letters) names.push_back("-" + n);
    }
    for (const std::string& n : o->get_fnames()) names.push_back("--" + n);
  }
  return names;
}

// The option that a word names: "--runs=3" and "-n3" as well. Null where it names none.
const CLI::Option* option_named(const CLI::App& app, const std::string& word) {
  if (word.starts_with("--")) return app.get_option_no_throw(word.substr(0, word.find('=')));
  return app.get_option_no_throw(word.substr(0, 2));
}

std::string unknown_option(const CLI::App& app, const std::string& word) {
  std::error_code ignored;
  if (!word.starts_with("--") && std::filesystem::exists(word, ignored)) {
    return fmt::format("'{}' begins with '-', like an option; write ./{}", word, word);
  }
  const std::string name = word.substr(0, word.find('='));
  std::string near = closest(name, names_of_options(app, !name.starts_with("--")));
  if (!name.starts_with("--") && name.size() > 2) {  // "-runs": one dash is missing more often than another letter meant
    if (app.get_option_no_throw("-" + name) != nullptr) near = "-" + name;
  } else if (name.size() <= 2) {
    near.clear();
  }
  return fmt::format("unknown option '{}'{}", name, suggestion(near));
}

// The first word that no command and no option explains; "" where there is none.
std::string unknown_word(const CLI::App& program, int argc, char** argv) {
  const CLI::App* app = &program;
  std::string path;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") break;
    const bool number = word.size() > 1 && (std::isdigit(static_cast<unsigned char>(word[1])) != 0 || word[1] == '.');
    if (word.size() < 2 || word[0] != '-' || number) {
      if (const CLI::App* sub = command_named(*app, word)) {
        path += word + " ";
        app = sub;
      } else if (!names_of_commands(*app).empty()) {
        return unknown_command(*app, path + word);
      }
      continue;
    }
    const CLI::Option* option = option_named(*app, word);
    if (option == nullptr) return unknown_option(*app, word);
    const bool apart = word.starts_with("--") ? word.find('=') == std::string::npos : word.size() == 2;
    if (apart && option->get_items_expected_max() > 0 && option->get_type_size() > 0) ++i;  // its value
  }
  return "";
}

// CLI11's own words, where those are for programmers.
std::string in_words(std::string text, const CLI::App& app) {
  constexpr std::string_view kConvert = "Could not convert: ";
  if (text.starts_with(kConvert)) {
    const std::size_t at = text.find(" = ");
    return fmt::format("{}: expected a number, found '{}'", text.substr(kConvert.size(), at - kConvert.size()),
                       at == std::string::npos ? "" : text.substr(at + 3));
  }
  if (const std::size_t at = text.find(" was given a disallowed flag override"); at != std::string::npos) {
    return fmt::format("{}{} takes no value", at == 1 ? "-" : "--", text.substr(0, at));
  }
  constexpr std::string_view kOne = "The following argument was not expected: ",
                             kSeveral = "The following arguments were not expected: ";
  for (const std::string_view start : {kOne, kSeveral}) {
    if (!text.starts_with(start)) continue;
    const std::string words = text.substr(start.size());
    const bool pattern = app.get_option_no_throw("-i") != nullptr && app.get_option_no_throw("-i")->count() > 0;
    return fmt::format("nothing takes '{}'{}", words, pattern ? "; put a pattern for files in quotes: -i 'photos/*.jpg'" : "");
  }
  if (const std::size_t at = text.find(": 1 required "); at != std::string::npos && text.ends_with(" missing")) {
    return text.substr(0, at) + " needs a value";
  }
  return text;
}

}  // namespace

std::string unknown_command(const CLI::App& app, const std::string& words) {
  const std::string near = command_meant(app, words.substr(words.rfind(' ') + 1));
  return fmt::format("unknown command '{}'{}: {}", words, near.empty() ? "; commands" : suggestion(near) + " Commands",
                     join(names_of_commands(app)));
}

std::string usage_message(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (std::string unknown = unknown_word(app, argc, argv); !unknown.empty()) return unknown;
  const CLI::App* used = &app;
  while (!used->get_subcommands().empty()) used = used->get_subcommands().front();
  if (used != &app && !names_of_commands(*used).empty()) {
    return fmt::format("sdx {} needs one of: {}", used->get_name(), join(names_of_commands(*used)));
  }
  return in_words(error.what(), *used);
}

}  // namespace sdx::cli
