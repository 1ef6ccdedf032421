#pragma once
// Options of ONNX Runtime's execution providers.

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "providers/interface/provider.h"
#include "providers/ort/library.h"

namespace sdx::ort {

// Throws Error(invalid_argument) with the closest match where an option looks like a misspelt one of those known here. Others go
// through: the library knows more of them, and checks them itself.
void check_options(std::string_view provider, const ProviderSettings& settings);

// Adds the execution provider ("cuda"; for "cpu" nothing) with its options, and entries of the session's own configuration
// ("session.…"). Throws Error(provider_unavailable) with the library's reason.
void append_provider(const Library& library, c::SessionOptions* options, std::string_view provider,
                     const ProviderSettings& settings);

// An option of every provider: ONNX Runtime writes its profile to a file whose name begins so.
inline constexpr std::string_view kProfilePrefix = "profile_prefix";

// Another: "1" binds inputs and outputs also where the provider works in the host's memory, "0" nowhere (device_runs.h).
inline constexpr std::string_view kIoBinding = "io_binding";

using Pairs = std::vector<std::pair<std::string, std::string>>;

// The options that the provider gets: the user's, later ones winning, over those that make it keep compiled models in
// settings.cache.
Pairs provider_options(std::string_view provider, const ProviderSettings& settings);

// Entries of the session's configuration that do so, for providers that keep a model of their own ("EPContext") instead. `model`:
// where.
Pairs context_config(std::string_view provider, const std::filesystem::path& model);
// True for those; the model is then loaded in place of the original once it is there.
bool keeps_context(std::string_view provider);
// True for these and for those that keep files by their options.
bool keeps_compiled(std::string_view provider);

// "CUDAExecutionProvider".
std::string_view vendor_name(std::string_view provider);

}  // namespace sdx::ort
