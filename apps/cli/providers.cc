// sdx providers

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <sdx/sdx.hpp>

#include "base/suggest.h"
#include "base/text/json_text.h"
#include "base/text/text_table.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/providers.h"
#include "session/selection.h"

namespace sdx::cli {
namespace {

constexpr const char* kProvidersExamples =
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

// What has been printed, and for which provider.
using Said = std::map<std::string, std::string>;

// A text that several providers share is printed only once.
std::string once(const std::string& text, const std::string& name, Said& said) {
  if (text.empty()) return "";
  const auto [at, fresh] = said.emplace(text, name);
  return fresh ? text : fmt::format("see {}", at->second);
}

std::string without(std::string text, const std::string& word) {
  for (std::size_t at = 0; !word.empty() && (at = text.find(word, at)) != std::string::npos;) text.erase(at, word.size());
  return text;
}

// The same for the parts of a reason, which differ in the provider's name at most: "not built in: LIBRARY has no
// XExecutionProvider; it has AExecutionProvider" becomes "not built in, see cuda".
std::string parts_once(const ProviderInfo& p, Said& said) {
  constexpr std::string_view kBetween = "; ", kWorse = "nor can ONNX Runtime's provider be used: ";
  std::string whole = once(p.reason, p.name, said);
  if (whole != p.reason || p.reason.find(kBetween) == std::string::npos) return whole;
  std::string out, seen;  // seen: where the part before is
  for (std::size_t at = 0; at < p.reason.size();) {
    const std::size_t end = std::min(p.reason.find(kBetween, at), p.reason.size());
    std::string part = p.reason.substr(at, end - at);
    at = end + kBetween.size();
    const std::string_view before = part.starts_with(kWorse) ? kWorse : "";
    part.erase(0, before.size());
    const auto [of, fresh] = said.emplace(without(part, p.ort_name), p.name);
    const std::size_t colon = part.find(": ");
    const bool goes_on = !fresh && of->second == seen && colon == std::string::npos;
    if (goes_on) continue;
    seen = fresh ? "" : of->second;
    const std::string text = fresh ? part : fmt::format("{}, see {}", part.substr(0, colon), seen);
    out += fmt::format("{}{}{}", out.empty() ? "" : kBetween, before, text);
  }
  return out;
}

// "CPU, through ONNX Runtime 1.23 (/opt/libonnxruntime.so)" -> that path.
std::string library_of(const ProviderInfo& p) {
  const std::string device = p.devices.empty() ? "" : p.devices.front();
  const std::size_t at = device.find("(/");
  return at == std::string::npos || !device.ends_with(')') ? "" : device.substr(at + 1, device.size() - at - 2);
}

// "/opt/libonnxruntime.so (ONNX Runtime 1.23) has no …" -> "ONNX Runtime 1.23 (see ort:cpu) has no …", where that row has the
// path.
std::string with_library_once(std::string text, const std::string& library) {
  const std::string start = library + " (";
  const std::size_t at = library.empty() ? std::string::npos : text.find(start);
  const std::size_t end = at == std::string::npos ? at : text.find(')', at + start.size());
  if (end == std::string::npos) return text;
  return text.replace(at, end + 1 - at, text.substr(at + start.size(), end - at - start.size()) + " (see ort:cpu)");
}

int list(bool json) {
  std::string items;
  std::string library;  // ONNX Runtime's
  Said said;
  std::vector<std::vector<std::string>> rows{{"provider", "here", "name in ONNX Runtime", "devices, or why not"}};
  for (const ProviderInfo& p : all_providers()) {
    if (!items.empty()) items += ',';
    items += provider_json(p);
    std::string text = p.available ? join(p.devices) : with_library_once(parts_once(p, said), library);
    if (p.name == "ort:cpu") library = library_of(p);
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

std::string provider_json(const ProviderInfo& p) {
  return fmt::format(
      "{{\"name\":{},\"ort_name\":{},\"hardware\":{},\"available\":{},\"reason\":{},\"hint\":{},\"version\":{},\"devices\":{}}}",
      json_string(p.name), json_string(p.ort_name), json_string(p.hardware), p.available, json_string(p.reason),
      json_string(p.hint), json_string(p.version), json_list(p.devices));
}

void add_providers(const Command& app, Action& action) {
  const Command command =
      app.add_subcommand("providers", "List what this machine can run models on, and why other providers are unavailable");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->footer(kProvidersExamples);
  command->callback([json, &action] { action = [json] { return list(*json); }; });
}

}  // namespace sdx::cli
