// com.microsoft NGramRepeatBlock 1: rules out the tokens that would repeat an n-gram.

#include <algorithm>
#include <limits>

#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct NGramRepeatBlockAttrs {
  std::int64_t ngram_size = 0;

  void fields(auto& f) { f.required("ngram_size", ngram_size); }
};

void run_ngram_repeat_block(OpContext& c) {
  const Tensor& ids = c.input(0);
  const Tensor& scores = c.input(1);
  const std::int64_t n = parse<NGramRepeatBlockAttrs>(c).ngram_size;
  if (n < 1) c.fail("ngram_size must be positive, received {}", n);
  if (ids.rank() != 2 || scores.rank() != 2 || ids.dim(0) != scores.dim(0)) {
    c.fail("expected input_ids [batch, length] and scores [batch, vocabulary], received {} and {}", ids.type_string(),
           scores.type_string());
  }
  Tensor& out = c.output(0, DataType::float32, scores.shape());
  const auto from = scores.values<float>();
  const auto to = out.mutable_values<float>();
  std::copy(from.begin(), from.end(), to.begin());
  const auto tokens = ids.values<std::int64_t>();
  const std::int64_t length = ids.dim(1), words = scores.dim(1);
  for (std::int64_t b = 0; b < ids.dim(0); ++b) {
    const std::int64_t* row = tokens.data() + b * length;
    for (std::int64_t i = 0; n <= length && i <= length - n; ++i) {
      c.stop().check();
      if (!std::equal(row + i, row + i + n - 1, row + length - n + 1)) continue;
      const std::int64_t token = row[i + n - 1];
      if (token < 0 || token >= words) c.fail("token {} is outside the vocabulary of {}", token, words);
      to[static_cast<std::size_t>(b * words + token)] = -std::numeric_limits<float>::infinity();
    }
  }
}

void infer_ngram(InferContext& c) {
  const SymShape* scores = c.shape(1);
  if (scores == nullptr) return c.output(0, c.dtype(1));
  c.output(0, c.dtype(1), *scores);
}

}  // namespace

void register_ngram_repeat_block(OpTable& t) {
  t.add(OpDef("com.microsoft", "NGramRepeatBlock", 1)
            .in("input_ids", "Tid", types::int64)
            .in("scores", "T", bit(DataType::float32))
            .out("scores_out", "T", bit(DataType::float32))
            .attrs<NGramRepeatBlockAttrs>()
            .infer_with(infer_ngram)
            .run_with(run_ngram_repeat_block));
}

}  // namespace sdx::ops
