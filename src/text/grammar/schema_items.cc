#include "text/grammar/schema_items.h"

#include <algorithm>

namespace sdx::text::grammar {
namespace {

constexpr std::size_t max_states = 1024;

Expression comma(Expressions& to, JsonParts& parts) { return to.sequence({parts.space(), to.text(","), parts.space()}); }

Expression in_brackets(Expressions& to, JsonParts& parts, Expression content) {
  return to.sequence({to.text("["), parts.space(), content, parts.space(), to.text("]")});
}

// The most items that are distinguished: beyond that, the count makes no difference.
std::size_t counted_items(const CountBounds& items) {
  return items.most != unlimited ? items.most : std::max<std::uint32_t>(items.least, 1);
}

std::size_t counted_hits(const CountBounds& hits) { return hits.most != unlimited ? hits.most : hits.least; }

Expression shared(Expressions& to, Expression e) { return e == to.never() || e == to.empty() ? e : to.as_rule("items", e); }

}  // namespace

bool countable(const CountBounds& items, const CountBounds& hits) {
  return counted_items(items) < max_states && counted_hits(hits) < max_states &&
         (counted_items(items) + 1) * (counted_hits(hits) + 1) <= max_states;
}

Expression counted_elements(Expressions& to, JsonParts& parts, Expression hit, Expression other, const CountBounds& items,
                            const CountBounds& hits) {
  const std::size_t last = counted_items(items), full = counted_hits(hits);
  const bool endless = items.most == unlimited;
  const Expression one_hit = shared(to, hit), one_other = shared(to, other), between = comma(to, parts);
  std::vector<Expression> behind(full + 1), now(full + 1);  // by how many hits there were: what follows `i` items
  for (std::size_t i = last + 1; i-- > 0;) {
    const auto after = [&](Expression item, Expression then) { return to.sequence({i > 0 ? between : to.empty(), item, then}); };
    const bool loops = endless && i == last;
    for (std::size_t h = full + 1; h-- > 0;) {
      std::vector<Expression> ways;
      if (i >= items.least && h >= hits.least && h <= hits.most) ways.push_back(to.empty());
      const std::vector<Expression>& next = loops ? now : behind;
      const bool more = loops || i < last;
      if (more && h < full) ways.push_back(after(one_hit, next[h + 1]));
      if (more && !loops) ways.push_back(after(one_other, next[h]));
      const Expression then = to.choice(std::move(ways));
      now[h] = shared(to, loops ? to.sequence({to.repeat(after(one_other, to.empty()), 0), then}) : then);
    }
    std::swap(now, behind);
  }
  return in_brackets(to, parts, behind[0]);
}

Expression distinct_elements(Expressions& to, JsonParts& parts, const std::vector<nlohmann::ordered_json>& values,
                             const CountBounds& items) {
  const auto size = static_cast<std::uint32_t>(values.size());
  if (items.least > std::min(size, items.most)) return to.never();
  // Beyond that, the count makes no difference.
  const std::uint32_t counted = items.most < size ? items.most : std::max<std::uint32_t>(items.least, 1);
  std::vector<Expression> behind(counted + 1), now(counted + 1);  // by how many were taken
  for (std::uint32_t taken = 0; taken <= counted; ++taken) behind[taken] = taken >= items.least ? to.empty() : to.never();
  const Expression between = comma(to, parts);
  for (std::size_t i = values.size(); i-- > 0;) {
    const Expression value = to.as_rule("value", parts.literal(values[i]));
    for (std::uint32_t taken = 0; taken <= counted; ++taken) {
      const bool full = taken == counted && items.most < size;
      const Expression next = behind[std::min(taken + 1, counted)];
      const Expression with = full ? to.never() : to.sequence({taken > 0 ? between : to.empty(), value, next});
      now[taken] = shared(to, to.choice({with, behind[taken]}));
    }
    std::swap(now, behind);
  }
  return in_brackets(to, parts, behind[0]);
}

}  // namespace sdx::text::grammar
