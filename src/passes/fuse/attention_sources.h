#pragma once
// The sources of attention's queries, keys and values. Internal to fuse_attention.

#include <optional>
#include <string>

#include "graph/edit.h"

namespace sdx::fuse {

// Q, K or V: [batch, heads, rows, size], or flat, [batch, rows, heads * size].
struct Source {
  // What a flat value needs: nothing, or a Reshape of [batch, rows, heads, size], or of [rows, heads, size] in a batch of one.
  enum class Lies : std::uint8_t { joined, apart, alone };

  ValueId value = kNoValue;
  bool flat = false;
  std::int64_t heads = 0;   // 0: not known, which only 4 axes allow
  ValueId past = kNoValue;  // the cache before it
  NodeId cache = kNoNode;   // the node that joins the two
  Lies lies = Lies::joined;
};

NodeId maker(const Graph& g, ValueId v);
// Steps up through multiplications with and divisions by scalars.
ValueId unscaled(const Graph& g, ValueId v, double& scale);
// [b, n, s, h] that is split off [b, s, n h].
Source split_heads(const Graph& g, ValueId v, double& scale);
// Keys or values [b, n, t, h].
Source key_source(const Graph& g, ValueId v, double& scale);
// K from K' [b, n, h, t].
std::optional<Source> transposed_keys(const Graph& g, ValueId v, double& scale);
// [b n, t, h] that is made of [b, t, n h]; no value where it is not.
Source heads_from_batch(const Graph& g, ValueId v, double& scale);

// Whether the value has the axes of its form.
bool has_form(const Graph& g, const Source& s);
// Equal counts of rows.
bool same_rows(const Graph& g, const Source& a, const Source& b);
// The batch: 1 where one serves all.
Dim batch_of(const Graph& g, const Source& s);
// The value as Attention reads it, behind a Reshape where it needs one.
ValueId as_operand(Graph& g, const Source& s, const std::string& name, int version);

}  // namespace sdx::fuse
