#pragma once
// Texts of the command itself: help, errors of a command line, and version.

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace sdx::cli {

// The subcommand of that name; null where there is none.
const CLI::App* command_named(const CLI::App& app, const std::string& name);
std::vector<std::string> names_of_commands(const CLI::App& app);

// A command's help in lines of at most `columns`, where its words let themselves be wrapped.
std::string help_of(const CLI::App& app, int columns);
// Options that each command has: -q and -v, where these letters are free.
void add_common_options(CLI::App& app);
// "unknown command 'models lst', did you mean 'ls'? Commands: …"; `app` has the last word's commands.
std::string unknown_command(const CLI::App& app, const std::string& words);
// Says what is wrong with a command line, and what was probably meant.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv);
// The text of --version: version, build and processor.
std::string version_text();

}  // namespace sdx::cli
