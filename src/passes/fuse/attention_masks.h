#pragma once
// Recognises the terms that are added to the scores of attention, for fuse_attention.

#include <string>
#include <vector>

#include "graph/edit.h"

namespace sdx::fuse {

struct Mask {
  ValueId add = kNoValue;        // added to the scores; or
  ValueId condition = kNoValue;  // where it holds (or, `inverted`, where not) the score is replaced
  ValueId replacement = kNoValue;
  bool inverted = false;  // replaced where the condition does not hold
  bool windows = false;   // `add` has an axis of 1 before those of the scores
  // Terms whose sum has the five axes of `apart`: the batch, and rows and columns of queries and keys.
  std::vector<ValueId> places = {};
  ValueId apart = kNoValue;
};

// Shifted windows (Swin) add a mask while the batch is apart from the windows: [w, n, q, k] -> [1, w, n, q, k], + mask, and back.
// The scores before that, and the mask; kNoValue where v is made otherwise.
ValueId scores_in_windows(const Graph& g, ValueId v, const Readers& readers, Mask& mask);

// Relative places in a picture (SAM) are added while queries and keys have rows and columns: [b, q, k] -> [b, r, c, r, c], +
// terms, and back. The scores before that, and the mask; kNoValue where v is made otherwise.
ValueId scores_in_places(const Graph& g, ValueId v, const Readers& readers, Mask& mask);

// Whether Attention can add the mask to scores of these extents, [batch, heads, queries, keys] or [batch, queries, keys].
bool usable(const Graph& g, const Mask& mask, const SymShape& scores);

// Whether these masks of scores are one that hides exactly the keys behind each query, the last of which sees all.
bool is_causal(const Graph& g, const std::vector<Mask>& masks);

// The effect of masks on scores [batch, heads, queries, keys]: `add` is added, and scores for which `see` is false are replaced
// by `hidden`. kNoValue: the mask has no such part.
struct JoinedMasks {
  ValueId add = kNoValue, see = kNoValue, hidden = kNoValue;
};

// `masks`: the last applies first. `heads`: the number of heads within the first extent of scores with three axes.
JoinedMasks joined_masks(Graph& g, const std::vector<Mask>& masks, const SymShape& scores, std::int64_t heads,
                         const std::string& name, int version);

}  // namespace sdx::fuse
