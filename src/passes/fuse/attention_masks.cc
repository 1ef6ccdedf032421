#include "passes/fuse/attention_masks.h"

#include <algorithm>

#include "tensor/element.h"

namespace sdx::fuse {
namespace {

// A masked score below this has an exponential of 0, whatever the others are.
constexpr double kNever = -1e9;
constexpr int kMostTerms = 4;

// The scores that the sum `at` of terms was added to, as `together` has them.
ValueId below_terms(const Graph& g, ValueId at, ValueId together, const Readers& readers, std::vector<ValueId>& terms) {
  if (readers.only(at) == kNoNode || terms.size() > kMostTerms) return kNoValue;
  const Node* apart = made_by(g, at, "Reshape", 2);
  if (apart != nullptr) return same_shape(g, apart->inputs[0], together) ? apart->inputs[0] : kNoValue;
  const Node* add = made_by(g, at, "Add", 2);
  for (std::size_t i = 0; add != nullptr && i < 2; ++i) {
    if (!same_shape(g, add->inputs[i], at)) continue;
    terms.push_back(add->inputs[1 - i]);
    if (const ValueId scores = below_terms(g, add->inputs[i], together, readers, terms); scores != kNoValue) return scores;
    terms.pop_back();
  }
  return kNoValue;
}

// The sum of the terms has all extents of `apart`, but for a batch that may be 1.
bool usable_places(const Graph& g, const Mask& mask) {
  const SymShape& all = *shape_of(g, mask.apart);
  std::vector<bool> whole(all.size(), false);
  whole[0] = true;
  for (const ValueId term : mask.places) {
    const SymShape* s = shape_of(g, term);
    if (!is_f32(g, term) || s == nullptr || s->size() != all.size()) return false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool same = (*s)[i] == all[i];
      if (!same && !is_const((*s)[i], 1)) return false;
      whole[i] = whole[i] || same;
    }
  }
  return std::find(whole.begin(), whole.end(), false) == whole.end();
}

// The mask's last extents are those of the scores, or 1 but for the keys'.
bool broadcasts(const Graph& g, ValueId mask, const SymShape& scores, bool windows = false) {
  const SymShape* s = shape_of(g, mask);
  if (windows) {  // the axis before the scores' goes with a reshape to known extents
    if (s == nullptr || s->size() != 5 || !is_const((*s)[0], 1)) return false;
    for (std::size_t i = 1; i < 5; ++i) {
      const Dim& d = (*s)[i];
      if (!d.is_const() || (!(d == scores[i - 1]) && (!is_const(d, 1) || i == 4))) return false;
    }
    return true;
  }
  if (s == nullptr || s->empty() || s->size() > scores.size()) return false;
  for (std::size_t i = 0; i < s->size(); ++i) {
    const Dim &d = (*s)[s->size() - 1 - i], &want = scores[scores.size() - 1 - i];
    if (!(d == want) && !(i > 0 && is_const(d, 1))) return false;
  }
  return true;
}

// A mask with a batch gets an axis of heads if its scores have none; this requires known extents.
bool gets_heads(const Graph& g, ValueId mask, const SymShape& scores) {
  return scores.size() == 3 && shape_of(g, mask)->size() == 3;
}
bool fits(const Graph& g, ValueId mask, const SymShape& scores) {
  if (!broadcasts(g, mask, scores)) return false;
  const SymShape& s = *shape_of(g, mask);
  return !gets_heads(g, mask, scores) || (s[1].is_const() && s[2].is_const());
}

// Whether a constant mask hides exactly the keys after each query; the last query sees all.
bool hides_later(const Graph& g, ValueId mask) {
  const Tensor* t = constant_of(g, mask);
  if (t == nullptr || t->dtype() != DataType::float32 || t->rank() < 2) return false;
  const std::int64_t keys = t->shape().back(), queries = t->shape()[t->rank() - 2];
  if (queries < 2 || t->size() != keys * queries || keys < queries) return false;
  for (std::int64_t i = 0; i < queries; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) {
      const double value = element_as_double(*t, i * keys + j);
      if (j <= i + keys - queries ? value != 0 : value > kNever) return false;
    }
  }
  return true;
}

ValueId reshaped(Graph& g, ValueId v, const std::vector<std::int64_t>& to, const std::string& what, const std::string& name,
                 int version) {
  return add_reshape(g, name, version, v, name + what, to, g.add_value(name + "_mask"));
}

// The shape [batch, heads, queries, keys] of a mask with the extents [`first`, queries, keys].
std::vector<std::int64_t> with_heads(const Dim& first, std::int64_t heads, const Dim& queries, const Dim& keys) {
  const bool all = is_const(first, 1);
  if (heads == 1) return {0, 1, queries.value(), keys.value()};
  return {all ? 1 : first.value() / heads, all ? 1 : heads, queries.value(), keys.value()};
}

ValueId sum_of(Graph& g, ValueId a, ValueId b, const std::string& name, int version) {
  if (a == kNoValue) return b;
  return add_node(g, make_node(name, "Add", version, {a, b}), name + "_masks");
}

ValueId added_node(Graph& g, const std::string& what, std::string op, std::vector<ValueId> inputs, const std::string& name,
                   int version) {
  return add_node(g, make_node(name, std::move(op), version, std::move(inputs)), name + what);
}

// A mask that is added, for [batch, heads, queries, keys].
ValueId as_added(Graph& g, const Mask& mask, const SymShape& scores, std::int64_t heads, const std::string& name, int version) {
  if (!mask.places.empty()) {
    ValueId sum = kNoValue;
    Dim first(1);
    for (const ValueId term : mask.places) {
      if (const Dim& own = (*shape_of(g, term))[0]; !is_const(own, 1)) first = own;
    }
    for (const ValueId term : mask.places) sum = sum_of(g, sum, term, name, version);
    return reshaped(g, sum, with_heads(first, heads, scores[1], scores[2]), "_places", name, version);
  }
  if (mask.windows) {
    const SymShape wide = *shape_of(g, mask.add);
    return reshaped(g, mask.add, {wide[1].value(), wide[2].value(), wide[3].value(), wide[4].value()}, "_windows", name, version);
  }
  if (!gets_heads(g, mask.add, scores)) return mask.add;
  const SymShape s = *shape_of(g, mask.add);
  return reshaped(g, mask.add, with_heads(s[0], heads, s[1], s[2]), "_heads", name, version);
}

}  // namespace

ValueId scores_in_windows(const Graph& g, ValueId v, const Readers& readers, Mask& mask) {
  const Node* together = made_by(g, v, "Reshape", 2);
  if (together == nullptr || readers.only(together->inputs[0]) == kNoNode) return kNoValue;
  const Node* add = made_by(g, together->inputs[0], "Add", 2);
  for (std::size_t i = 0; add != nullptr && i < 2; ++i) {
    const Node* apart = made_by(g, add->inputs[i], "Reshape", 2);
    if (apart == nullptr || readers.only(add->inputs[i]) == kNoNode) continue;
    const SymShape *wide = shape_of(g, add->inputs[i]), *scores = shape_of(g, v);
    if (wide == nullptr || scores == nullptr || wide->size() != 5 || !is_const((*wide)[0], 1)) continue;
    if (SymShape(wide->begin() + 1, wide->end()) != *scores || !same_shape(g, apart->inputs[0], v)) continue;
    mask.add = add->inputs[1 - i];
    mask.windows = true;
    return apart->inputs[0];
  }
  return kNoValue;
}

ValueId scores_in_places(const Graph& g, ValueId v, const Readers& readers, Mask& mask) {
  const Node* together = made_by(g, v, "Reshape", 2);
  if (together == nullptr) return kNoValue;
  const SymShape *wide = shape_of(g, together->inputs[0]), *scores = shape_of(g, v);
  if (wide == nullptr || scores == nullptr || wide->size() != 5 || scores->size() != 3 || (*wide)[0] != (*scores)[0])
    return kNoValue;
  for (std::size_t i = 1; i < 3; ++i) {
    const Dim &rows = (*wide)[2 * i - 1], &columns = (*wide)[2 * i];
    if (!rows.is_const() || !columns.is_const() || !is_const((*scores)[i], rows.value() * columns.value())) return kNoValue;
  }
  mask.apart = together->inputs[0];
  const ValueId below = below_terms(g, mask.apart, v, readers, mask.places);
  return mask.places.empty() ? kNoValue : below;
}

bool usable(const Graph& g, const Mask& mask, const SymShape& scores) {
  if (!mask.places.empty()) return usable_places(g, mask);
  if (mask.windows) return is_f32(g, mask.add) && broadcasts(g, mask.add, scores, true);
  if (mask.add != kNoValue) return is_f32(g, mask.add) && fits(g, mask.add, scores);
  const auto value = scalar_value(g, mask.replacement);
  // So low that the score weighs nothing beside one that is not hidden (see kLeastScore in providers/cpu/lowering/attention.cc).
  return value && *value <= -1e30 && is_f32(g, mask.replacement) && broadcasts(g, mask.condition, scores) &&
         !gets_heads(g, mask.condition, scores);
}

bool is_causal(const Graph& g, const std::vector<Mask>& masks) {
  return masks.size() == 1 && masks[0].add != kNoValue && !masks[0].windows && hides_later(g, masks[0].add);
}

JoinedMasks joined_masks(Graph& g, const std::vector<Mask>& masks, const SymShape& scores, std::int64_t heads,
                         const std::string& name, int version) {
  JoinedMasks all;
  for (auto mask = masks.rbegin(); mask != masks.rend(); ++mask) {
    if (mask->condition == kNoValue) {
      const ValueId add = as_added(g, *mask, scores, heads, name, version);
      all.add = sum_of(g, all.add, add, name, version);
      if (all.see != kNoValue) all.hidden = added_node(g, "_hidden", "Add", {all.hidden, add}, name, version);
      continue;
    }
    const ValueId see = mask->inverted ? mask->condition : added_node(g, "_see", "Not", {mask->condition}, name, version);
    if (all.see == kNoValue) {
      all.see = see;
      all.hidden = mask->replacement;
    } else {
      all.hidden = added_node(g, "_hidden", "Where", {see, all.hidden, mask->replacement}, name, version);
      all.see = added_node(g, "_see", "And", {all.see, see}, name, version);
    }
  }
  return all;
}

}  // namespace sdx::fuse
