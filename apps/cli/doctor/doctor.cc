// sdx doctor

#include <memory>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/doctor/facts.h"

namespace sdx::cli {
namespace {

constexpr const char* kDoctorExamples =
    "Examples:\n"
    "  sdx doctor\n"
    "  sdx doctor --json\n"
    "Runs no model, writes nothing, and uses no network. Exit code 1: something that is installed does not work.\n";

int examine(bool json) {
  const doctor::Facts facts = doctor::collect();
  if (json) {
    print(doctor::json_of(facts));
  } else {
    print_coloured(doctor::text_of(facts, static_cast<std::size_t>(terminal_columns())),
                   {{"works", Colour::green}, {"fails", Colour::red}, {"absent", Colour::yellow}, {"", Colour::bold}});
  }
  return doctor::problems(facts).empty() ? kOk : kFailed;
}

}  // namespace

void add_doctor(const Command& app, Action& action) {
  const Command command =
      app.add_subcommand("doctor", "Show what of this installation works: libraries, processor, providers, folders");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->footer(kDoctorExamples);
  command->callback([json, &action] { action = [json] { return examine(*json); }; });
}

}  // namespace sdx::cli
