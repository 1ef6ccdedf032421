#include "cli/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/suggest.h"

namespace sdx::cli {
namespace {

std::map<const CLI::Option*, std::vector<std::string>>& completions() {
  static std::map<const CLI::Option*, std::vector<std::string>> all;
  return all;
}

}  // namespace

std::vector<std::string> words_of(const CLI::Option& option) {
  if (const auto at = completions().find(&option); at != completions().end()) return at->second;
  const std::string type = option.get_type_name();  // "STAGE:{loaded,simplified}"
  const std::size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return split_list(type.substr(open + 1, close - open - 1));
}

Argument Argument::type_name(std::string name) const {
  option_->type_name(std::move(name));
  return *this;
}
Argument Argument::required() const {
  option_->required();
  return *this;
}
Argument Argument::one_of(std::vector<std::string> words) const {
  const std::string shown = fmt::format("{{{}}}", fmt::join(words, ","));  // behind the value's name in help, and for completion
  option_->check(CLI::Validator(
      [words = std::move(words)](std::string& text) -> std::string {
        if (std::find(words.begin(), words.end(), text) != words.end()) return "";
        const std::string near = closest(text, words);
        return fmt::format("expected one of {}, found '{}'{}", join(words), text,
                           near.empty() ? "" : "; did you mean '" + near + "'?");
      },
      shown));
  return *this;
}
Argument Argument::completed_by(std::vector<std::string> words) const {
  completions()[option_] = std::move(words);
  return *this;
}
Argument Argument::range(std::int64_t least, std::int64_t most) const {
  option_->check(CLI::Validator(
      [least, most](std::string& text) -> std::string {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool whole = error == std::errc{} && end == text.data() + text.size();
        if (whole && value >= least && value <= most) return "";
        return fmt::format("expected an integer from {} to {}, found '{}'", least, most, text);
      },
      ""));
  return *this;
}
Argument Argument::delimiter(char c) const {
  option_->delimiter(c);
  return *this;
}
Argument Argument::one_word() const {
  option_->allow_extra_args(false);
  return *this;
}
Argument Argument::expected(int words) const {
  option_->expected(words);
  return *this;
}
Argument Argument::last_counts() const {
  option_->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  return *this;
}
Argument Argument::group(const std::string& heading) const {
  option_->group(heading);
  return *this;
}

template <class T>
Argument Command::add_option(std::string names, T& to, std::string help) const {
  return Argument(app_->add_option(std::move(names), to, std::move(help)));
}

template Argument Command::add_option(std::string, std::string&, std::string) const;
template Argument Command::add_option(std::string, int&, std::string) const;
template Argument Command::add_option(std::string, std::int64_t&, std::string) const;
template Argument Command::add_option(std::string, std::uint64_t&, std::string) const;
template Argument Command::add_option(std::string, double&, std::string) const;
template Argument Command::add_option(std::string, std::optional<double>&, std::string) const;
template Argument Command::add_option(std::string, std::filesystem::path&, std::string) const;
template Argument Command::add_option(std::string, std::vector<std::string>&, std::string) const;
template Argument Command::add_option(std::string, std::vector<int>&, std::string) const;
template Argument Command::add_option(std::string, std::vector<std::int64_t>&, std::string) const;

Argument Command::add_flag(std::string names, bool& to, std::string help) const {
  return Argument(app_->add_flag(std::move(names), to, std::move(help)));
}

Argument Command::add_option_function(const std::string& names, std::function<void(const std::vector<std::string>&)> use,
                                      std::string help) const {
  const auto said = [use = std::move(use), names](const std::vector<std::string>& words) {
    try {
      use(words);
    } catch (const Error& e) {
      const std::size_t dashes = names.find("--");
      throw CLI::ValidationError(dashes == std::string::npos ? names : names.substr(dashes, names.find(',', dashes) - dashes),
                                 e.message());
    }
  };
  return Argument(app_->add_option_function<std::vector<std::string>>(names, said, std::move(help)));
}

Argument Command::add_flag_function(std::string names, std::function<void(std::int64_t)> use, std::string help) const {
  return Argument(app_->add_flag_function(std::move(names), std::move(use), std::move(help)));
}

void Command::remove_option(const char* name) const { app_->remove_option(app_->get_option(name)); }

std::size_t Command::count(const char* name) const {
  const CLI::Option* known = app_->get_option_no_throw(name);
  return known != nullptr ? known->count() : 0;
}

Command Command::add_subcommand(std::string name, std::string help) const {
  CLI::App* sub = app_->add_subcommand(std::move(name), std::move(help));
  sub->footer("");  // not the examples of the command above
  return Command(*sub);
}
void Command::require_subcommand(int count) const { app_->require_subcommand(count); }
void Command::footer(std::string text) const { app_->footer(std::move(text)); }
void Command::callback(std::function<void()> parsed) const { app_->callback(std::move(parsed)); }

}  // namespace sdx::cli
