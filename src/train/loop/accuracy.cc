#include "train/loop/accuracy.h"

#include "tensor/element.h"

namespace sdx::train::loop {

Hits count_hits(const Tensor& scores, const Tensor& labels, std::int64_t ignored) {
  Hits hits;
  const bool integers = labels.dtype() == DataType::int64 || labels.dtype() == DataType::int32;
  if (!integers || scores.rank() < 2 || scores.dim(1) < 1 || scores.size() == 0) return hits;
  const std::int64_t outer = scores.dim(0), classes = scores.dim(1), inner = scores.size() / outer / classes;
  if (labels.size() != outer * inner) return hits;
  const Tensor floats = to_float32(scores);
  const float* const from = floats.values<float>().data();
  const bool wide = labels.dtype() == DataType::int64;
  const void* const data = labels.data();
  for (std::int64_t i = 0; i < outer * inner; ++i) {
    const std::int64_t label = wide ? static_cast<const std::int64_t*>(data)[i] : static_cast<const std::int32_t*>(data)[i];
    if (label == ignored) continue;
    const float* const row = from + i / inner * classes * inner + i % inner;
    std::int64_t best = 0;
    for (std::int64_t c = 1; c < classes; ++c) {
      if (row[c * inner] > row[best * inner]) best = c;
    }
    ++hits.counted;
    hits.right += best == label ? 1 : 0;
  }
  return hits;
}

}  // namespace sdx::train::loop
