// com.microsoft WordConvEmbedding 1: words as rows of character numbers (0: none); embedded, convolved, tanh, the maximum over
// the word. Source: Kim et al., arXiv:1508.06615.

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct WordConvEmbeddingAttrs {
  std::int64_t char_embedding_size = -1, conv_window_size = -1, embedding_size = -1;  // -1: as the weights say

  void fields(auto& f) {
    f("char_embedding_size", char_embedding_size);
    f("conv_window_size", conv_window_size);
    f("embedding_size", embedding_size);
  }
};

void check_attribute(std::int64_t said, const char* name, std::int64_t is) {
  if (said != -1 && said != is) fail(ErrorCode::invalid_model, "attribute '{}' is {}, but the weights say {}", name, said, is);
}

void infer_embedding(InferContext& c) {
  const SymShape* words = c.shape(0);
  const SymShape* w = c.shape(1);
  if (words != nullptr && words->size() != 2) c.fail("Sequence must have 2 axes, received {}", to_string(*words));
  if (w != nullptr && w->size() != 4) c.fail("W must have 4 axes, received {}", to_string(*w));
  c.output(0, DataType::float32, {words != nullptr ? (*words)[0] : Dim(), w != nullptr ? (*w)[0] : Dim()});
}

void run_embedding(OpContext& c) {
  const Tensor &words = c.input(0), &w = c.input(1), &bias = c.input(2), &table = c.input(3);
  if (words.rank() != 2 || w.rank() != 4 || table.rank() != 2 || w.dim(1) != 1 || w.dim(3) != table.dim(1) ||
      bias.size() != w.dim(0)) {
    c.fail(
        "Sequence [words, characters], W [filters, 1, window, size], B [filters] and C [characters, size] do not fit: {}, {}, "
        "{}, {}",
        words.type_string(), w.type_string(), bias.type_string(), table.type_string());
  }
  const std::int64_t filters = w.dim(0), window = w.dim(2), size = w.dim(3), longest = words.dim(1);
  const auto attr = parse<WordConvEmbeddingAttrs>(c);
  check_attribute(attr.embedding_size, "embedding_size", filters);
  check_attribute(attr.conv_window_size, "conv_window_size", window);
  check_attribute(attr.char_embedding_size, "char_embedding_size", size);
  if (window < 1 || window > longest) c.fail("the window of {} characters is longer than the words of {}", window, longest);
  const auto* ids = static_cast<const std::int32_t*>(words.data());
  for (std::int64_t i = 0; i < words.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= table.dim(0)) c.fail("character {} is outside C, which has {} rows", ids[i], table.dim(0));
  }
  Tensor& y = c.output(0, DataType::float32, {words.dim(0), filters});
  auto* out = static_cast<float*>(y.mutable_data());
  const float *weights = static_cast<const float*>(w.data()), *embedded = static_cast<const float*>(table.data()),
              *start = static_cast<const float*>(bias.data());
  parallel_for(words.dim(0), 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t word = first; word < last; ++word) {
      c.stop().check();
      const std::int32_t* chars = ids + word * longest;
      float* to = out + word * filters;
      std::fill_n(to, filters, 0.0F);  // a word without characters
      if (chars[0] == 0) continue;
      const std::int64_t length = longest - std::count(chars, chars + longest, 0);
      for (std::int64_t f = 0; f < filters; ++f) {
        float best = -1;  // tanh is above
        for (std::int64_t at = 0; at <= std::max(length, window) - window; ++at) {
          float sum = start[f];
          for (std::int64_t k = 0; k < window; ++k) {
            const float* row = embedded + chars[at + k] * size;
            for (std::int64_t i = 0; i < size; ++i) sum += row[i] * weights[(f * window + k) * size + i];
          }
          best = std::max(best, std::tanh(sum));
        }
        to[f] = best;
      }
    }
  });
}

}  // namespace

void register_word_conv_embedding(OpTable& t) {
  constexpr TypeSet kFloat = bit(DataType::float32);
  t.add(OpDef("com.microsoft", "WordConvEmbedding", 1)
            .in("Sequence", "T", bit(DataType::int32))
            .in("W B C", "T1", kFloat)
            .out("Y", "T1", kFloat)
            .attrs<WordConvEmbeddingAttrs>()
            .infer_with(infer_embedding)
            .run_with(run_embedding));
}

}  // namespace sdx::ops
