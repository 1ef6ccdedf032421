#pragma once
// Changing one entry in the text of a registry.

#include <optional>
#include <sdx/registry.hpp>
#include <string>

namespace sdx::project {

// The text with `entry` behind the last model; nullopt where the layout has no line for it. The caller reads the result again:
// these work by indentation and do not know all of YAML.
std::optional<std::string> with_entry(const std::string& text, const RegistryEntry& entry);
// The text without the lines of the model `name`.
std::optional<std::string> without_entry(const std::string& text, const std::string& name);

}  // namespace sdx::project
