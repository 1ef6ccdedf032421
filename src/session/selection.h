#pragma once
// Selects providers that can be used, by the user's request.

#include <string>
#include <string_view>
#include <vector>

#include <sdx/session.hpp>

#include "base/tools_api.h"
#include "providers/interface/provider.h"
#include "providers/interface/strict.h"

namespace sdx::session {

struct Selection {
  std::vector<const Provider*> chain;  // never empty; ends with `cpu`
  std::vector<std::string> devices;    // parallel: the kind of device that an intent wants of it ("NPU"), else empty
  std::vector<std::string> fallbacks;  // "requested cuda, using cpu: <reason>. <what to do>"
  std::string why;                     // "asked for cuda", "the automatic order of Linux"
};

// The message with `instead` in place of kOmitStrict.
SDX_TOOLS_API std::string without_strict(std::string message, std::string_view instead);

// Throws Error(invalid_argument) for an unknown name or runtime; Error(provider_unavailable) when `strict` and the first
// requested provider cannot be used. Providers that only `auto` mentions are skipped silently (not requested). All others
// that are skipped cause one warning, in one line, unless `told_elsewhere`.
SDX_TOOLS_API Selection select_providers(const SessionOptions& options, bool told_elsewhere = false);

// "ort:cuda,cpu"
SDX_TOOLS_API std::string label_of(const Selection& selection);
// "ort" where ONNX Runtime is behind one of these providers of the chain, else "native".
std::string runtime_of(const std::vector<std::string>& running, const Selection& selection);

// Whether a provider can be used with these options, by its name in a chain ("cuda", "ort:cpu"); if not, the reason and what to
// do.
SDX_TOOLS_API ProviderInfo look_at_provider(const std::string& name, const SessionOptions& options, Effort effort);

}  // namespace sdx::session
