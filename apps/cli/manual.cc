#include "cli/manual.h"

#include <fmt/format.h>

#include <sdx/sdx.hpp>

namespace sdx::cli {
namespace {

// Text as roff reads it: no backslash, hyphen or leading dot means anything.
std::string plain(std::string_view text) {
  std::string out;
  bool starts = true;
  for (const char c : text) {
    if (starts && (c == '.' || c == '\'')) out += "\\&";
    starts = c == '\n';
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + plain(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + plain(text) + "\\fR"; }

bool is_positional(const CLI::Option& o) { return o.get_lnames().empty() && o.get_snames().empty(); }

std::string flags(const CLI::Option& o) {
  std::string out;
  for (const std::string& name : o.get_snames()) out += (out.empty() ? "" : ", ") + bold("-" + name);
  for (const std::string& name : o.get_lnames()) out += (out.empty() ? "" : ", ") + bold("--" + name);
  const std::string type = o.get_type_name();
  if (o.get_items_expected_max() > 0 && !type.empty()) out += " " + italic(type);
  return out;
}

std::string options(const CLI::App& command) {
  std::string out;
  for (const CLI::Option* o : command.get_options()) {
    if (o->get_group().empty()) continue;  // hidden
    out += fmt::format(".TP\n{}\n{}\n", is_positional(*o) ? italic(o->get_name(true)) : flags(*o), plain(o->get_description()));
  }
  return out;
}

void add_command(const CLI::App& command, const std::string& before, std::string& out) {
  const std::string name = before + " " + command.get_name();
  out += fmt::format(".SS \"{}\"\n{}.\n", plain(name), plain(command.get_description()));
  out += options(command);
  const std::string examples = command.get_footer();
  if (!examples.empty()) out += fmt::format(".PP\n.nf\n{}{}.fi\n", plain(examples), examples.ends_with('\n') ? "" : "\n");
  for (const CLI::App* sub : command.get_subcommands(nullptr)) add_command(*sub, name, out);
}

}  // namespace

std::string manual_page(const CLI::App& program) {
  std::string out = fmt::format(
      ".TH SDX 1 \"\" \"sdx {}\" \"User Commands\"\n"
      ".SH NAME\nsdx \\- run, examine, train and serve ONNX models\n"
      ".SH SYNOPSIS\n.B sdx\n.I COMMAND\n.RI [ ARGUMENT ...]\n"
      ".SH DESCRIPTION\n{}\n"
      "Results go to standard output, warnings, notes and errors to standard error.\n"
      ".SH COMMANDS\n",
      plain(version()), plain(program.get_description()));
  for (const CLI::App* sub : program.get_subcommands(nullptr)) add_command(*sub, "sdx", out);
  out +=
      ".SH EXIT STATUS\n.TP\n0\nSuccess.\n.TP\n1\nFailure, or a verification that did not pass.\n.TP\n2\nWrong usage.\n"
      ".SH ENVIRONMENT\n.TP\n.B SDX_CACHE_DIR\nWhere compiled models and measured choices are kept, in place of ~/.cache/sdx.\n"
      ".TP\n.B SDX_THREADS\nThreads of the pool that all sessions share; one per core where it is not set.\n"
      ".TP\n.B SDX_ORT_LIB\nONNX Runtime's shared library, for the providers that it has.\n";
  return out;
}

}  // namespace sdx::cli
