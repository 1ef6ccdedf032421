#pragma once
// Properties of characters, as regular expressions name them: \p{L}.

#include <optional>
#include <string_view>

#include "text/grammar/expressions.h"

namespace sdx::text::grammar {

// The characters of general categories ("L", "Lu", "Letter", "gc=Nd", "General_Category=P") and of emoji properties, limited to
// those on which all versions of Unicode agree. Nothing for others (scripts).
std::optional<Characters> characters_of_property(std::string_view name);
// Characters that certainly lack the property: those without a category are left out.
std::optional<Characters> characters_without_property(std::string_view name);

}  // namespace sdx::text::grammar
