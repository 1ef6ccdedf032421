// com.microsoft RemovePadding 1, RestorePadding 1: between [batch, length, features] padded on the right and its real tokens.

#include <algorithm>
#include <cstring>

#include "ops/context.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

void infer_remove(InferContext& c) {
  const SymShape* x = c.shape(0);
  if (x != nullptr && x->size() != 3) c.fail("input must have 3 axes, received {}", to_string(*x));
  const Dim batch = x != nullptr ? (*x)[0] : Dim(), length = x != nullptr ? (*x)[1] : Dim();
  Dim total;
  if (const std::vector<Dim>* counts = c.sym(1)) {
    total = 0;
    for (const Dim& d : *counts) total = total + d;
  }
  c.output(0, c.dtype(0), {total, x != nullptr ? (*x)[2] : Dim()});
  c.output(1, DataType::int32, {batch, length});
  c.output(2, DataType::int32, {batch + Dim(1)});
  c.output(3, DataType::int32, {Dim(1)});
}

void run_remove(OpContext& c) {
  const Tensor& x = c.input(0);
  const Tensor& counts = c.input(1);
  if (x.rank() != 3 || counts.dtype() != DataType::int32 || counts.shape() != Shape{x.dim(0)}) {
    c.fail("expected input [batch,length,features] and int32[batch] token counts, received {} and {}", x.type_string(),
           counts.type_string());
  }
  const std::int64_t batch = x.dim(0), length = x.dim(1);
  if (element_count(Shape{batch, length}) > 0x7FFFFFFF) c.fail("{} tokens do not fit into int32 offsets", batch * length);
  const auto n = counts.values<std::int32_t>();
  std::int64_t total = 0;
  std::int32_t longest = 0;
  for (const std::int32_t v : n) {
    if (v < 0 || v > length) c.fail("a token count is {}; expected 0 to {}", v, length);
    total += v;
    longest = std::max(longest, v);
  }
  Tensor& y = c.output(0, x.dtype(), {total, x.dim(2)});
  Tensor& offsets = c.output(1, DataType::int32, {batch, length});
  Tensor& sums = c.output(2, DataType::int32, {batch + 1});
  c.output(3, DataType::int32, {1}).mutable_values<std::int32_t>()[0] = longest;
  const std::size_t row = byte_size(x.dtype(), x.dim(2));
  auto* to = static_cast<char*>(y.mutable_data());
  auto real = offsets.mutable_values<std::int32_t>().begin();
  auto padding = real + total;
  auto sum = sums.mutable_values<std::int32_t>().begin();
  *sum = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t here = n[static_cast<std::size_t>(b)];
    sum[b + 1] = static_cast<std::int32_t>(sum[b] + here);
    for (std::int64_t s = 0; s < length; ++s) *(s < here ? real++ : padding++) = static_cast<std::int32_t>(b * length + s);
    const std::size_t bytes = static_cast<std::size_t>(here) * row;
    if (bytes == 0) continue;
    std::memcpy(to, static_cast<const char*>(x.data()) + static_cast<std::size_t>(b * length) * row, bytes);
    to += bytes;
  }
}

void infer_restore(InferContext& c) {
  const SymShape* x = c.shape(0);
  const SymShape* offsets = c.shape(1);
  if (x != nullptr && x->size() != 2) c.fail("input must have 2 axes, received {}", to_string(*x));
  if (offsets != nullptr && offsets->size() != 2) c.fail("token_offset must have 2 axes, received {}", to_string(*offsets));
  const Dim none;
  c.output(0, c.dtype(0),
           {offsets != nullptr ? (*offsets)[0] : none, offsets != nullptr ? (*offsets)[1] : none, x != nullptr ? (*x)[1] : none});
}

void run_restore(OpContext& c) {
  const Tensor& x = c.input(0);
  const Tensor& offsets = c.input(1);
  if (x.rank() != 2 || offsets.rank() != 2 || offsets.dtype() != DataType::int32 || x.dim(0) > offsets.size()) {
    c.fail("expected input [tokens,features] and int32[batch,length] offsets, received {} and {}", x.type_string(),
           offsets.type_string());
  }
  Tensor& y = c.output(0, x.dtype(), {offsets.dim(0), offsets.dim(1), x.dim(1)});
  const std::size_t row = byte_size(x.dtype(), x.dim(1));
  if (y.bytes() == 0) return;
  std::memset(y.mutable_data(), 0, y.bytes());
  const auto at = offsets.values<std::int32_t>();
  for (std::int64_t i = 0; i < x.dim(0); ++i) {
    const std::int32_t token = at[static_cast<std::size_t>(i)];
    if (token < 0 || token >= offsets.size()) c.fail("token_offset holds {}; expected 0 to {}", token, offsets.size() - 1);
    std::memcpy(static_cast<char*>(y.mutable_data()) + static_cast<std::size_t>(token) * row,
                static_cast<const char*>(x.data()) + static_cast<std::size_t>(i) * row, row);
  }
}

}  // namespace

void register_padding_removal(OpTable& t) {
  constexpr TypeSet kInt = bit(DataType::int32);
  t.add(OpDef("com.microsoft", "RemovePadding", 1)
            .in("input", "T", types::floats)
            .in("sequence_token_count", "M", kInt)
            .out("output", "T", types::floats)
            .out("token_offset cumulated_seq_len max_seq_len", "M", kInt)
            .infer_with(infer_remove)
            .run_with(run_remove));
  t.add(OpDef("com.microsoft", "RestorePadding", 1)
            .in("input", "T", types::floats)
            .in("token_offset", "M", kInt)
            .out("output", "T", types::floats)
            .infer_with(infer_restore)
            .run_with(run_restore));
}

}  // namespace sdx::ops
