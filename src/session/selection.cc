#include "session/selection.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/suggest.h"
#include "providers/interface/policy.h"
#include "providers/table.h"
#include "session/provider_settings.h"

namespace sdx::session {
namespace {

const ProviderName* name_of(std::string_view plain) {
  for (const ProviderName& p : provider_names()) {
    if (p.name == plain) return &p;
  }
  return nullptr;
}

// "no NVIDIA GPU: none on the PCI bus, …" -> "no NVIDIA GPU".
std::string in_short(const std::string& reason) { return reason.substr(0, std::min(reason.find(": "), reason.find("; "))); }

// One line. If several providers are missing, it is short: the report has the full reason of each.
std::string warning_of(const std::vector<ChainGap>& gaps, const std::vector<std::string>& asked, const std::string& taken) {
  if (std::all_of(gaps.begin(), gaps.end(), [&](const ChainGap& g) { return g.reason == gaps[0].reason; })) {
    std::vector<std::string> names;
    for (const ChainGap& g : gaps) names.push_back(g.provider);
    return fmt::format("requested {}, using {}: {}{}{}", join(names), taken, gaps[0].reason,
                       gaps[0].hint.empty() ? "" : ". To fix it: ", gaps[0].hint);
  }
  std::string reasons;
  for (const ChainGap& g : gaps) reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", g.provider, in_short(g.reason));
  return fmt::format("requested {}, using {} ({}). `sdx providers` gives details and how to fix it", join(asked), taken, reasons);
}

}  // namespace

std::string without_strict(std::string message, std::string_view instead) {
  if (const std::size_t at = message.find(kOmitStrict); at != std::string::npos) message.replace(at, kOmitStrict.size(), instead);
  return message;
}

ProviderInfo look_at_provider(const std::string& name, const SessionOptions& options, Effort effort) {
  ProviderInfo info;
  if (const Provider* provider = find_provider(name)) {
    info = provider->probe(provider_settings(options, name), effort);
  } else {
    info.reason = "this build has no code for it";
  }
  info.name = name;
  if (const ProviderName* known = name_of(name.starts_with("ort:") ? std::string_view(name).substr(4) : name)) {
    info.ort_name = known->ort_name;
    info.hardware = known->hardware;
  }
  return info;
}

std::string label_of(const Selection& selection) {
  std::vector<std::string> names;
  for (const Provider* p : selection.chain) names.emplace_back(p->name());
  return join(names, ",");
}

std::string runtime_of(const std::vector<std::string>& running, const Selection& selection) {
  const bool ort = std::any_of(selection.chain.begin(), selection.chain.end(), [&](const Provider* p) {
    return p->family() == "ort" && std::find(running.begin(), running.end(), p->name()) != running.end();
  });
  return ort ? "ort" : "native";
}

Selection select_providers(const SessionOptions& options, bool told_elsewhere) {
  PolicyInput input;
  const bool cpu_only = options.runtime == Runtime::native ||
                        (!options.providers.empty() && std::all_of(options.providers.begin(), options.providers.end(),
                                                                   [](const std::string& p) { return p == "cpu"; }));
  if (!cpu_only) input.machine = this_machine();
  input.asked = options.providers;
  input.strict = options.strict;
  input.runtime = options.runtime;
  input.provider_priority = options.provider_priority;
  input.platform_defaults = options.platform_defaults;
  input.probe = [&](const std::string& name) { return look_at_provider(name, options, Effort::quick); };
  const Chain chain = decide_chain(input);
  if (!chain.broken.empty()) {
    fail(ErrorCode::provider_unavailable, "{}, but {}{}", chain.why, chain.broken, kOmitStrict);
  }
  Selection selection;
  selection.why = chain.why;
  for (const ChainLink& link : chain.links) {
    const Provider* p = find_provider(link.provider);
    if (p == nullptr) continue;
    selection.chain.push_back(p);
    selection.devices.push_back(link.device);
  }
  if (selection.chain.empty()) fail(ErrorCode::provider_unavailable, "{}, but no provider is available", chain.why);
  const std::string taken(selection.chain.front()->name());
  std::vector<ChainGap> warned;
  for (const ChainGap& g : chain.gaps) {
    if (!g.asked_for) {
      log::debug("{}: skipped {}: {}", chain.why, g.provider, g.reason);
      continue;
    }
    warned.push_back(g);
    selection.fallbacks.push_back(fmt::format("requested {}, using {}: {}{}{}", g.provider, taken, g.reason,
                                              g.hint.empty() ? "" : ". To fix it: ", g.hint));
  }
  if (!warned.empty() && !told_elsewhere) log::warning("{}", warning_of(warned, options.providers, taken));
  return selection;
}

}  // namespace sdx::session

namespace sdx {

std::vector<ProviderInfo> providers() {
  std::vector<ProviderInfo> out;
  for (const ProviderName& p : provider_names()) {
    out.push_back(session::look_at_provider(p.name, {}, Effort::full));
    if (p.name == "cpu") out.back().version = version();
  }
  return out;
}

std::string_view version() noexcept { return SDX_VERSION; }

}  // namespace sdx
