#pragma once
// Properties of characters, as regular expressions name them: \p{L}.

#include <optional>
#include <string_view>

#include "text/grammar/expressions.h"

namespace sdx::text::grammar {

// General categories ("L", "Lu", "Letter", "gc=Nd", "General_Category=P") and the properties of emoji, of which only what every
// version of Unicode agrees on. Nothing for others (scripts).
std::optional<Characters> characters_of_property(std::string_view name);
// Those that surely do not have it: characters without a category are left out.
std::optional<Characters> characters_without_property(std::string_view name);

}  // namespace sdx::text::grammar
