// sdx providers

#include <fmt/format.h>

#include <memory>
#include <sdx/sdx.hpp>

#include "base/suggest.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/values/outputs.h"

namespace sdx::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  sdx providers\n"
    "  sdx providers --json\n";

int list(bool json) {
  std::string out;
  std::string items;
  for (const ProviderInfo& p : providers()) {
    if (!items.empty()) items += ',';
    items += fmt::format(
        "{{\"name\":{},\"ort_name\":{},\"hardware\":{},\"available\":{},\"reason\":{},\"hint\":{},\"version\":{},\"devices\":{}}"
        "}",
        json_text(p.name), json_text(p.ort_name), json_text(p.hardware), p.available, json_text(p.reason), json_text(p.hint),
        json_text(p.version), json_list(p.devices));
    out += fmt::format("{:<10} {:<4} {:<28} {}\n", p.name, p.available ? "yes" : "no", p.ort_name,
                       p.available ? join(p.devices) : p.reason);
    if (p.available && !p.version.empty()) out += fmt::format("{:<15} version {}\n", "", p.version);
    if (!p.available && !p.hint.empty()) out += fmt::format("{:<15} hint: {}\n", "", p.hint);
  }
  print(json ? "{\"providers\":[" + items + "]}\n" : out);
  return kOk;
}

}  // namespace

void add_providers(const Command& app, Action& action) {
  const Command command =
      app.add_subcommand("providers", "List what this machine can run models on, and why other providers are unavailable");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->footer(kExamples);
  command->callback([json, &action] { action = [json] { return list(*json); }; });
}

}  // namespace sdx::cli
