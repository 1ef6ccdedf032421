#pragma once
// The folder in which a provider keeps its compiled form of one model.

#include <memory>
#include <string_view>

#include "cache/entry.h"
#include "providers/interface/provider.h"

namespace sdx {

// The entry in settings.cache for this region, its weights (external ones as well), the options, and `runtime` (name and version
// of the compiler). Null if settings.cache is empty or cannot be written.
std::shared_ptr<cache::CacheEntry> open_cache(const Region& region, const ProviderSettings& settings, std::string_view runtime);

}  // namespace sdx
