// sdx providers

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <sdx/sdx.hpp>

#include "base/suggest.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/values/outputs.h"
#include "session/selection.h"

namespace sdx::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  sdx providers\n"
    "  sdx providers --json\n";

// Every provider, and ONNX Runtime's own kernels for the processor, which a chain names "ort:cpu".
std::vector<ProviderInfo> all_providers() {
  std::vector<ProviderInfo> all = providers();
  const auto cpu = std::find_if(all.begin(), all.end(), [](const ProviderInfo& p) { return p.name == "cpu"; });
  all.insert(cpu == all.end() ? cpu : cpu + 1, session::look_at_provider("ort:cpu", {}, Effort::full));
  return all;
}

// A text that several providers share is printed only once.
std::string once(const std::string& text, const std::string& name, std::map<std::string, std::string>& said) {
  if (text.empty()) return "";
  const auto [at, fresh] = said.emplace(text, name);
  return fresh ? text : fmt::format("see {}", at->second);
}

int list(bool json) {
  std::string items;
  std::map<std::string, std::string> said;
  std::vector<std::vector<std::string>> rows{{"provider", "here", "name in ONNX Runtime", "devices, or why not"}};
  for (const ProviderInfo& p : all_providers()) {
    if (!items.empty()) items += ',';
    items += fmt::format(
        "{{\"name\":{},\"ort_name\":{},\"hardware\":{},\"available\":{},\"reason\":{},\"hint\":{},\"version\":{},\"devices\":{}}"
        "}",
        json_text(p.name), json_text(p.ort_name), json_text(p.hardware), p.available, json_text(p.reason), json_text(p.hint),
        json_text(p.version), json_list(p.devices));
    std::string text = p.available ? join(p.devices) : once(p.reason, p.name, said);
    if (p.available && !p.version.empty()) text += fmt::format("{}version {}", text.empty() ? "" : "; ", p.version);
    const std::string hint = p.available ? "" : once(p.hint, p.name, said);
    if (!hint.empty() && !hint.starts_with("see ")) text += fmt::format(". To fix it: {}", hint);
    rows.push_back({p.name, p.available ? "yes" : "no", p.ort_name, text});
  }
  if (json) {
    print("{\"providers\":[" + items + "]}\n");
  } else {
    print_coloured(text_table(rows, TableLayout{"", static_cast<std::size_t>(terminal_columns()), 1}),
                   {{"yes", Colour::green}, {"", Colour::bold}});
  }
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
