#pragma once
// From what the user asked for to providers that can be used.

#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "provider/provider.h"

namespace sdx {

struct Selection {
  std::vector<const Provider*> chain;  // never empty; ends with `cpu`
  std::vector<std::string> fallbacks;  // "wanted cuda, not available: …"
};

// Throws Error(invalid_argument) for an unknown name; Error(provider_unavailable) when `strict` and a provider that was asked for
// by name cannot be used. Providers that only `auto` mentions are left out without a word: nobody asked for them.
Selection select_providers(const SessionOptions& options);

}  // namespace sdx
