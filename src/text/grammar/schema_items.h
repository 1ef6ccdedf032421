#pragma once
// Lists of a JSON schema that have to hold some values.

#include "text/grammar/readers.h"

namespace sdx::text::grammar {

struct CountBounds {
  std::uint32_t least = 0, most = unlimited;
};

// Whether counting both takes few enough states.
bool countable(const CountBounds& items, const CountBounds& hits);

// […]: `items` many, of which `hits` many are `hit`; the others are `other`, which may be hits too where `hits` has no upper
// bound. For countable() bounds.
Expression counted_elements(Expressions& to, JsonParts& parts, Expression hit, Expression other, const CountBounds& items,
                            const CountBounds& hits);

// […]: some of these values, each at most once, in their order.
Expression distinct_elements(Expressions& to, JsonParts& parts, const std::vector<nlohmann::ordered_json>& values,
                             const CountBounds& items);

}  // namespace sdx::text::grammar
