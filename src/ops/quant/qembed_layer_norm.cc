// com.microsoft QEmbedLayerNormalization 1: the sum of word, position and segment embeddings in 8 bits, normalised.

#include <cmath>
#include <optional>
#include <vector>

#include "ops/context.h"
#include "ops/norm/norm_reference.h"
#include "ops/norm/signatures.h"
#include "ops/op.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

enum In : std::size_t { kIds, kSegments, kWord, kPosition, kSegment, kGamma, kBeta, kMask };
constexpr std::size_t kScales = 8, kZeroPoints = 13;  // of word, position, segment, gamma and beta, in this order

void infer_qembed(InferContext& c) {
  const SymShape* ids = c.shape(kIds);
  const SymShape* words = c.shape(kWord);
  if (ids != nullptr && ids->size() != 2) c.fail("input_ids must have shape [batch, sequence], received {}", to_string(*ids));
  if (words != nullptr && words->size() != 2) c.fail("the word embedding must have 2 axes, received {}", to_string(*words));
  const Dim batch = ids != nullptr ? (*ids)[0] : Dim();
  c.output(0, DataType::float32, {batch, ids != nullptr ? (*ids)[1] : Dim(), words != nullptr ? (*words)[1] : Dim()});
  c.output(1, DataType::int32, {batch});
}

// A table of bytes with one scale; `number` as in kScales.
class Table {
 public:
  Table(OpContext& c, std::size_t number, std::int64_t columns, bool vector) : tensor_(c.input(kWord + number)) {
    const Tensor &scale = c.input(kScales + number), &zero = c.input(kZeroPoints + number);
    if (tensor_.rank() != (vector ? 1 : 2) || tensor_.shape().back() != columns) {
      c.fail("input {} must have rows of {} elements, received {}", kWord + number, columns, tensor_.type_string());
    }
    if (scale.size() != 1 || zero.size() != 1) c.fail("scales and zero points must be single numbers");
    scale_ = static_cast<const float*>(scale.data())[0];
    zero_ = static_cast<int>(element_as_int(zero, 0));
  }
  std::int64_t rows() const { return tensor_.dim(0); }
  float at(std::int64_t i) const {
    const int q = tensor_.dtype() == DataType::uint8 ? static_cast<const std::uint8_t*>(tensor_.data())[i]
                                                     : static_cast<const std::int8_t*>(tensor_.data())[i];
    return static_cast<float>(q - zero_) * scale_;
  }

 private:
  const Tensor& tensor_;
  float scale_ = 1;
  int zero_ = 0;
};

void write_mask_index(OpContext& c, const Shape& ids) {
  Tensor& out = c.output(1, DataType::int32, {ids[0]});
  const Tensor* mask = c.optional_input(kMask);
  if (mask != nullptr && mask->shape() != ids)
    c.fail("mask must have shape {}, received {}", to_string(ids), mask->type_string());
  for (std::int64_t b = 0; b < ids[0]; ++b) {
    std::int64_t kept = 0;
    for (std::int64_t i = 0; mask != nullptr && i < ids[1]; ++i) kept += element_as_int(*mask, b * ids[1] + i) == 1 ? 1 : 0;
    set_element_int(out, b, kept);
  }
}

void run_qembed(OpContext& c) {
  const Tensor& ids = c.input(kIds);
  const Tensor& words = c.input(kWord);
  const Tensor* segments = c.optional_input(kSegments);
  if (ids.rank() != 2 || words.rank() != 2) c.fail("input_ids and the word embedding must have 2 axes");
  if (segments != nullptr && segments->shape() != ids.shape()) c.fail("segment_ids must have shape {}", to_string(ids.shape()));
  const float epsilon = parse<SkipNormAttrs>(c).epsilon;
  if (!(epsilon >= 0)) c.fail("attribute 'epsilon' is {}; it must not be negative", epsilon);
  const std::int64_t n = words.dim(1), length = ids.dim(1);
  const Table word(c, 0, n, false), position(c, 1, n, false), gamma(c, 3, n, true), beta(c, 4, n, true);
  std::optional<Table> segment;
  if (segments != nullptr) segment.emplace(c, 2, n, false);
  if (length > position.rows()) c.fail("{} tokens, but only {} position embeddings", length, position.rows());
  Tensor& y = c.output(0, DataType::float32, {ids.dim(0), length, n});
  auto* out = static_cast<float*>(y.mutable_data());
  std::vector<float> sum(static_cast<std::size_t>(n));
  for (std::int64_t r = 0; r < ids.size() && n > 0; ++r) {
    const std::int64_t id = element_as_int(ids, r), part = segment ? element_as_int(*segments, r) : 0;
    if (id < 0 || id >= word.rows()) c.fail("word id {} is out of range; permitted: 0 to {}", id, word.rows() - 1);
    if (segment && (part < 0 || part >= segment->rows())) c.fail("segment id {} is out of range", part);
    for (std::int64_t i = 0; i < n; ++i) {
      sum[static_cast<std::size_t>(i)] =
          word.at(id * n + i) + position.at(r % length * n + i) + (segment ? segment->at(part * n + i) : 0);
    }
    const Moments m = moments_of(sum.data(), n);
    const double inverse = 1 / std::sqrt(m.variance + static_cast<double>(epsilon));
    for (std::int64_t i = 0; i < n; ++i) {
      const auto centred = static_cast<float>((static_cast<double>(sum[static_cast<std::size_t>(i)]) - m.mean) * inverse);
      out[r * n + i] = centred * gamma.at(i) + beta.at(i);
    }
  }
  write_mask_index(c, ids.shape());
}

}  // namespace

void register_qembed_layer_norm(OpTable& t) {
  constexpr TypeSet kByte = set_of(DataType::uint8, DataType::int8), kInt = bit(DataType::int32), kFloat = bit(DataType::float32);
  constexpr Arity kOptional = Arity::optional;
  OpDef d("com.microsoft", "QEmbedLayerNormalization", 1);
  d.in("input_ids", "T1", kInt).in("segment_ids", "T1", kInt, kOptional);
  d.in("word_embedding_quant position_embedding_quant", "T2", kByte).in("segment_embedding", "T2", kByte, kOptional);
  d.in("gamma_quant beta_quant", "T2", kByte).in("mask", "T1", kInt, kOptional);
  for (const std::string part : {"word_embedding", "position_embedding", "segment_embedding", "gamma", "beta"}) {
    d.in(part + "_scale", "T", kFloat, part == "segment_embedding" ? kOptional : Arity::required);
  }
  for (const std::string part : {"word_embedding", "position_embedding", "segment_embedding", "gamma", "beta"}) {
    d.in(part + "_zero_point", "T2", kByte, part == "segment_embedding" ? kOptional : Arity::required);
  }
  d.out("layernorm_out", "T", kFloat).out("mask_index_out", "T1", kInt).attrs<SkipNormAttrs>();
  t.add(std::move(d).infer_with(infer_qembed).run_with(run_qembed));
}

}  // namespace sdx::ops
