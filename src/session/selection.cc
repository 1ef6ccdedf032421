#include "session/selection.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/suggest.h"
#include "providers/table.h"
#include "session/provider_settings.h"

namespace sdx {
std::vector<ProviderInfo> providers() {
  std::vector<ProviderInfo> out;
  for (const ProviderName& p : provider_names()) {
    const Provider* provider = find_provider(p.name);
    if (provider == nullptr) continue;
    ProviderInfo info = provider->probe({}, Effort::full);
    info.ort_name = p.ort_name;
    info.hardware = p.hardware;
    if (info.name == "cpu") info.version = version();
    out.push_back(std::move(info));
  }
  return out;
}

std::string_view version() noexcept { return SDX_VERSION; }

Selection select_providers(const SessionOptions& options) {
  const bool automatic =
      options.providers.empty() || std::all_of(options.providers.begin(), options.providers.end(),
                                               [](const std::string& p) { return canonical_provider(p) == "auto"; });
  const std::vector<std::string> asked = automatic ? std::vector<std::string>{"auto"} : options.providers;
  const std::vector<std::string> chain = provider_chain(asked, options.strict);
  Selection selection;
  std::vector<std::string> unavailable;
  for (const std::string& name : chain) {
    const Provider* provider = find_provider(name);
    // Without a GPU or NPU of Intel's it would only use the CPU, which our own engine does already.
    if (automatic && name == "openvino") continue;
    ProviderInfo info;
    if (provider != nullptr) info = provider->probe(provider_settings(options, name), Effort::quick);
    if (info.available) {
      selection.chain.push_back(provider);
      continue;
    }
    unavailable.push_back(name + ": " + info.reason);
  }
  if (!automatic && !unavailable.empty()) {
    if (options.strict) {
      fail(ErrorCode::provider_unavailable, "asked for {}, but {}. Leave out `strict` to fall back to the next provider",
           join(options.providers), join(unavailable, "; "));
    }
    const std::string taken = selection.chain.empty() ? "none" : std::string(selection.chain.front()->name());
    for (const std::string& u : unavailable) selection.fallbacks.push_back(fmt::format("wanted {}; took {}", u, taken));
    log::warning("asked for {}; taking {} ({})", join(options.providers), taken, join(unavailable, "; "));
  }
  if (selection.chain.empty()) fail(ErrorCode::provider_unavailable, "no provider is available: {}", join(unavailable, "; "));
  return selection;
}

}  // namespace sdx
