#pragma once
// Telling whether files are the ones that something was made from.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/tools_api.h"

namespace sdx::cache {

struct Fingerprint {
  std::string name;  // relative to the model's folder
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  std::string hash;  // 32 hexadecimal digits: XXH3 with 128 bits, which finds accidents, not attackers
};

// The model file and the files of external data that it names. Throws Error(io | invalid_model), naming external data that is not
// there.
SDX_TOOLS_API std::vector<Fingerprint> fingerprints(const std::filesystem::path& model);

// Whether the file is the one that `known` describes; reads it only if size or time differ. False if the file is gone.
bool unchanged(const std::filesystem::path& folder, const Fingerprint& known);

}  // namespace sdx::cache
