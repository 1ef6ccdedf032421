#include "session/provider_settings.h"

#include <algorithm>

#include "base/suggest.h"
#include "cache/folder.h"
#include "providers/table.h"

namespace sdx::session {

ProviderSettings provider_settings(const SessionOptions& options, std::string_view provider) {
  ProviderSettings s;
  const std::string_view plain = provider.starts_with("ort:") ? provider.substr(4) : provider;
  const auto add = [&](std::string_view wanted) {
    for (const auto& [name, list] : options.provider_options) {
      if (canonical_provider(name) == wanted) s.options.insert(s.options.end(), list.begin(), list.end());
    }
  };
  add(plain);
  if (plain != provider) add(provider);
  s.ort_library = options.ort_library;
  s.openvino_library = options.openvino_library;
  const std::filesystem::path cache = cache::cache_folder(options.cache_folder);
  if (options.cache && !cache.empty()) s.cache = cache / std::string(plain);
  s.threads = options.threads;
  s.optimize = options.optimize;
  s.strict = options.strict;
  s.profile = options.profile;
  return s;
}

std::vector<plan::ChosenProvider> chosen_providers(const Selection& selection, const SessionOptions& options) {
  std::vector<plan::ChosenProvider> chosen;
  for (const Provider* p : selection.chain) {
    ProviderSettings settings = p->compiles_regions() ? provider_settings(options, p->name()) : ProviderSettings{};
    // An intent ("npu") selects a kind of device if a provider has several; the user's own setting takes precedence.
    const std::string& device = selection.devices[chosen.size()];
    const bool said =
        std::any_of(settings.options.begin(), settings.options.end(), [](const auto& o) { return o.first == "device_type"; });
    if (!device.empty() && !said) settings.options.emplace_back("device_type", device);
    chosen.push_back({p, std::move(settings)});
  }
  return chosen;
}

std::vector<std::string> check_provider_options(const SessionOptions& options) {
  std::vector<std::string> ignored;
  for (const auto& [name, list] : options.provider_options) {
    const std::string canonical = canonical_provider(name);
    if (const Provider* p = find_provider(canonical)) p->check_options(provider_settings(options, canonical));
    if (canonical != "cpu") continue;
    for (const auto& [key, value] : list) {
      if (std::find(ignored.begin(), ignored.end(), key) == ignored.end()) ignored.push_back(key);
    }
  }
  if (ignored.empty()) return {};
  return {"options of provider 'cpu' that have no effect, because it has no allocator of ONNX Runtime's kind: " + join(ignored)};
}

}  // namespace sdx::session
