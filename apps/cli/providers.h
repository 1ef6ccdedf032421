#pragma once

#include <sdx/provider.hpp>
#include <string>

namespace sdx::cli {

// An object with all that is known of a provider.
std::string provider_json(const ProviderInfo& provider);

}  // namespace sdx::cli
