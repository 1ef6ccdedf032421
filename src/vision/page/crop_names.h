#pragma once
// Names of the files in an archive of crops.

#include <string>
#include <string_view>
#include <unordered_set>

namespace sdx::faces::page {

// "../a:b" becomes "___a_b", at most 200 bytes long; never empty: characters that could lead out of a folder, or upset a file
// system, become '_'.
std::string harmless_name(std::string_view name);

// Returns a safe name that is not among those `taken`, and adds it there: a second "name.ext" becomes "name-2.ext".
std::string unique_name(std::string_view name, std::unordered_set<std::string>& taken);

}  // namespace sdx::faces::page
