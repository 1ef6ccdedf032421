#pragma once
// Selects the settings of each provider from a session's options.

#include <string>
#include <string_view>
#include <vector>

#include <sdx/session.hpp>

#include "plan/regions.h"
#include "session/selection.h"

namespace sdx::session {

// The settings for the provider of that name. Options given for "cuda" count for "ort:cuda", too, before those given for it.
ProviderSettings provider_settings(const SessionOptions& options, std::string_view provider);

// The chain with the settings of each provider.
std::vector<plan::ChosenProvider> chosen_providers(const Selection& selection, const SessionOptions& options);

// Throws Error(invalid_argument): options for a provider that does not exist, or that this provider does not know, with the
// closest match. Returns what the report should say about those that are accepted without any effect.
std::vector<std::string> check_provider_options(const SessionOptions& options);

}  // namespace sdx::session
