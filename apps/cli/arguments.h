#pragma once
// The arguments of a command, by CLI11. Its templates cost every file that sees them 4 s of compilation; behind these few
// functions they are compiled once, in arguments.cc.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sdx::cli {

// An option or a positional argument of a command. A handle: copies mean the same.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}

  // The placeholder that --help shows for the value.
  Argument type_name(std::string name) const;
  Argument required() const;
  Argument one_of(std::vector<std::string> words) const;
  // The words that shells offer. Unlike with one_of(), users may type others.
  Argument completed_by(std::vector<std::string> words) const;
  Argument range(std::int64_t least, std::int64_t most) const;
  // Several values in one word.
  Argument delimiter(char c) const;
  // One word for each time that the option is named: else a list would swallow the words behind it.
  Argument one_word() const;
  // The number of words that it takes in all.
  Argument expected(int words) const;
  // Of a flag that is named more than once, the last counts.
  Argument last_counts() const;
  // The heading under which --help lists it.
  Argument group(const std::string& heading) const;

  const Argument* operator->() const { return this; }

 private:
  CLI::Option* option_;
};

// The words of one_of() and completed_by().
std::vector<std::string> words_of(const CLI::Option& option);

// A command or subcommand. A handle: copies mean the same, and none outlives the program's arguments. What options write to must
// outlive parsing.
class Command {
 public:
  Command() = default;
  explicit Command(CLI::App& app) : app_(&app) {}

  // T: a text, a path, a whole number, a double, an optional double, a vector of texts or of whole numbers: see arguments.cc.
  template <class T>
  Argument add_option(std::string names, T& to, std::string help) const;
  Argument add_flag(std::string names, bool& to, std::string help) const;
  // `use` receives the words, and throws an Error that says what is wrong with them.
  Argument add_option_function(const std::string& names, std::function<void(const std::vector<std::string>&)> use,
                               std::string help) const;
  // `use` receives how often the flag was named: a negative number for its opposite.
  Argument add_flag_function(std::string names, std::function<void(std::int64_t)> use, std::string help) const;
  void remove_option(const char* name) const;
  // How often the option was named; 0 where there is no such option.
  std::size_t count(const char* name) const;

  Command add_subcommand(std::string name, std::string help) const;
  void require_subcommand(int count) const;
  // What --help says at the end.
  void footer(std::string text) const;
  void callback(std::function<void()> parsed) const;

  CLI::App& app() const { return *app_; }
  explicit operator bool() const { return app_ != nullptr; }
  const Command* operator->() const { return this; }

 private:
  CLI::App* app_ = nullptr;
};

}  // namespace sdx::cli
