#include "project/backends.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "providers/interface/provider.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 10> kPlatforms{"linux_nvidia", "linux_amd",     "linux_intel", "linux",  "windows_nvidia",
                                                      "windows_amd",  "windows_intel", "windows",     "darwin", "macos"};

// A name or intent; "ort:NAME".
std::string provider_at(const YamlValue& value) {
  try {
    return canonical_provider(value.string());
  } catch (const Error& e) {
    value.fail(e.message());
  }
}

bool is_provider(const std::string& name) {
  try {
    canonical_provider(name);
    return true;
  } catch (const Error&) {
    return false;
  }
}

Backend parse_backend(const std::string& name, const YamlValue& value) {
  value.only_keys({"provider", "options", "description"});
  if (is_provider(name)) value.fail("a backend cannot have a provider's name");
  if (name.empty() || name.find_first_of(",. ") != std::string::npos)
    value.fail("a backend's name must not contain commas, dots or spaces");
  Backend b;
  b.name = name;
  b.provider = provider_at(value.require("provider"));
  if (const YamlValue options = value.get("options")) {
    for (const auto& [key, option] : options.entries()) b.options.emplace_back(key, option.text());
  }
  if (const YamlValue text = value.get("description")) b.description = text.text();
  return b;
}

}  // namespace

const Backend* Backends::find(std::string_view name) const noexcept {
  const auto it = std::find_if(backends.begin(), backends.end(), [&](const Backend& b) { return b.name == name; });
  return it == backends.end() ? nullptr : &*it;
}

Backends parse_backends(const YamlDocument& document) {
  const YamlValue root = document.root();
  Backends out;
  out.file = document.name();
  if (root.is_null()) return out;
  root.only_keys({"backends", "provider_priority", "platform_defaults"});
  if (const YamlValue backends = root.get("backends")) {
    for (const auto& [name, value] : backends.entries()) out.backends.push_back(parse_backend(name, value));
  }
  if (const YamlValue list = root.get("provider_priority")) {
    if (list.is_scalar()) out.provider_priority.push_back(provider_at(list));
    if (!list.is_scalar()) {
      for (const YamlValue& item : list.list()) out.provider_priority.push_back(provider_at(item));
    }
  }
  if (const YamlValue defaults = root.get("platform_defaults")) {
    defaults.only_keys(std::span<const std::string_view>(kPlatforms));
    for (const auto& [platform, value] : defaults.entries()) out.platform_defaults.emplace_back(platform, provider_at(value));
  }
  return out;
}

std::optional<fs::path> backends_file(const project::Places& places) {
  std::vector<fs::path> folders;
  if (!places.registry.empty()) folders.push_back(places.registry.parent_path());
  folders.push_back(places.working);
  if (!places.home.empty()) folders.push_back(places.home);
  std::error_code none;
  for (const fs::path& folder : folders) {
    const fs::path file = folder == "." || folder.empty() ? fs::path("backends.yaml") : folder / "backends.yaml";
    if (fs::is_regular_file(file, none)) return file;
  }
  return std::nullopt;
}

std::optional<Backends> find_backends(const project::Places& places) {
  const std::optional<fs::path> file = backends_file(places);
  if (!file) return std::nullopt;
  YamlDocument document = YamlDocument::read(*file);
  document.expand_environment();
  return parse_backends(document);
}

void apply_backends(const Backends& b, SessionOptions& o) {
  if (o.provider_priority.empty()) o.provider_priority = b.provider_priority;
  if (o.platform_defaults.empty()) o.platform_defaults = b.platform_defaults;
  decltype(o.provider_options) added;
  for (std::string& name : o.providers) {
    const Backend* backend = b.find(name);
    if (backend == nullptr) continue;
    name = backend->provider;
    const auto same = std::find_if(added.begin(), added.end(), [&](const auto& a) { return a.first == backend->provider; });
    if (same != added.end() && same->second != backend->options) {
      fail(ErrorCode::invalid_argument, "two backends of the chain use provider '{}' with different options ('{}')",
           backend->provider, b.file.string());
    }
    if (same == added.end()) added.emplace_back(backend->provider, backend->options);
  }
  // Later options win, so options given for this session come last.
  o.provider_options.insert(o.provider_options.begin(), added.begin(), added.end());
}

}  // namespace sdx
