#include "session/selection.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/suggest.h"
#include "providers/table.h"

namespace sdx {
namespace {

// What stands between a provider and this machine, for providers without code of their own in this build.
ProviderInfo describe_missing(const ProviderName& p) {
  ProviderInfo info;
  info.name = p.name;
  info.ort_name = p.ort_name;
  info.hardware = p.hardware;
  const bool here =
#if defined(__APPLE__)
      p.platforms == "all" || p.platforms.find("macOS") != std::string::npos;
#elif defined(_WIN32)
      p.platforms == "all" || p.platforms.find("Windows") != std::string::npos;
#else
      p.platforms == "all" || p.platforms.find("Linux") != std::string::npos;
#endif
  if (!here) {
    info.reason = "exists on " + p.platforms + " only";
  } else {
    info.reason = "this build has no bridge to ONNX Runtime, through which " + p.ort_name + " is reached";
    info.hint = "use cpu";
  }
  return info;
}

}  // namespace

std::vector<ProviderInfo> providers() {
  std::vector<ProviderInfo> out;
  for (const ProviderName& p : provider_names()) {
    if (const Provider* provider = find_provider(p.name)) {
      ProviderInfo info = provider->probe({}, Effort::full);
      info.ort_name = p.ort_name;
      info.hardware = p.hardware;
      info.version = version();
      out.push_back(std::move(info));
    } else {
      out.push_back(describe_missing(p));
    }
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
  const std::vector<ProviderInfo> known = providers();
  Selection selection;
  std::vector<std::string> unavailable;
  for (const std::string& name : chain) {
    const Provider* provider = find_provider(name);
    if (provider != nullptr && provider->probe({}, Effort::quick).available) {
      selection.chain.push_back(provider);
      continue;
    }
    const std::string plain = name.starts_with("ort:") ? name.substr(4) : name;
    const auto it = std::find_if(known.begin(), known.end(), [&](const ProviderInfo& i) { return i.name == plain; });
    std::string reason = it == known.end() ? "not known" : it->reason;
    if (name.starts_with("ort:")) reason = "this build has no bridge to ONNX Runtime";
    unavailable.push_back(name + ": " + reason);
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
