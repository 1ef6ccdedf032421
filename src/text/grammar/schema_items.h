#pragma once
// Lists of a JSON schema that have to hold some values.

#include "text/grammar/readers.h"

namespace sdx::text::grammar {

struct CountBounds {
  std::uint32_t least = 0, most = unlimited;
};

// Whether counting both takes few enough states.
bool countable(const CountBounds& items, const CountBounds& hits);

// A list of `items` elements, `hits` of which match `hit`. The others match `other`; they may also match `hit` if `hits` has no
// upper bound. For countable() bounds.
Expression counted_elements(Expressions& to, JsonParts& parts, Expression hit, Expression other, const CountBounds& items,
                            const CountBounds& hits);

// […]: some of these values, each at most once, in their order.
Expression distinct_elements(Expressions& to, JsonParts& parts, const std::vector<nlohmann::ordered_json>& values,
                             const CountBounds& items);

}  // namespace sdx::text::grammar
