#include "text/model/network/file_weights.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/parallel.h"
#include "text/model/network/block_codes.h"

namespace sdx::text {
namespace {

// Rows of a matrix as MatMulNBits and GatherBlockQuantized take them.
struct Coded {
  CodeFormat format;
  Tensor codes;     // uint8[rows, k / block, block * bits / 8]
  Tensor scales;    // float32[rows, k / block]
  Tensor minimums;  // float32[k / block, rows]: the right side of a product; undefined where there are none
};

constexpr std::int64_t kGrain = 16;  // rows

class FileStyle : public WeightStyle {
 public:
  FileStyle(std::shared_ptr<const TensorFiles> file, FileWeights style) : file_(std::move(file)), style_(style) {}

  ValueId product(GraphWriter& g, const std::string& name, ValueId x, const StoredTensor& weight, std::int64_t first,
                  std::int64_t rows, ValueId bias) override {
    const GgmlFormat& format = *find_ggml(weight.type);
    const bool rounded = (style_ == FileWeights::int8 || style_ == FileWeights::int4) && weight.shape[1] % 32 == 0;
    ValueId y = kNoValue;
    if (type() == DataType::float16 || style_ == FileWeights::float32 || (format.block == 1 && !rounded)) {
      const ValueId w = g.constant(name + ".weight", with_type(transposed(weight, first, rows), type()));
      y = g.node("MatMul", name + "/MatMul", {x, w});
    } else {
      y = coded_product(g, name, x, rounded ? round_anew(weight, first, rows) : as_stored(weight, first, rows), rows,
                        weight.shape[1]);
    }
    return bias == kNoValue ? y : g.node("Add", name + "/Add", {y, bias});
  }

  ValueId rows(GraphWriter& g, const std::string& name, const StoredTensor& weight, ValueId indices) override {
    const GgmlFormat& format = *find_ggml(weight.type);
    const std::int64_t n = weight.shape[0], k = weight.shape[1];
    const bool plain = format.block == 1 || style_ != FileWeights::as_stored;
    // The middle of the codes is what the operator takes for the zero point; others, and minimums, become floats.
    if (plain || code_format(format.type).has_minimum ||
        code_format(format.type).zero != 1 << (code_format(format.type).bits - 1)) {
      return g.node("Gather", name + "/Gather",
                    {g.constant("model.embed_tokens.weight", with_type(floats(weight, 0, n), type())), indices});
    }
    const Coded c = as_stored(weight, 0, n);
    return g.node("com.microsoft.GatherBlockQuantized", name + "/Gather",
                  {g.constant("model.embed_tokens.weight", c.codes.reshaped({n, k * c.format.bits / 8})), indices,
                   g.constant("model.embed_tokens.scales", c.scales)},
                  {{"bits", std::int64_t{c.format.bits}},
                   {"block_size", c.format.block},
                   {"gather_axis", std::int64_t{0}},
                   {"quantize_axis", std::int64_t{1}}});
  }

  ValueId grouped(GraphWriter&, const std::string&, ValueId, const StoredTensor& weight, std::int64_t) override {
    fail(ErrorCode::not_implemented, "tensor '{}': latent attention cannot be written to files", weight.name);
  }

  // Experts become floats, gates and ups in turn, the form that all versions of the operator have.
  ValueId experts(GraphWriter& g, const std::string& name, ValueId x, ValueId scores, const ExpertTensors& t,
                  const ExpertConfig& c) override {
    if (c.sigmoid || c.groups > 1 || t.choice_bias.defined())
      fail(ErrorCode::not_implemented, "the operator of files cannot choose experts by probabilities of their own, or by groups");
    const std::int64_t k = t.gate[0].shape[1], f = t.down[0].shape[1];
    const auto constant = [&](const char* of, const Tensor& values, Shape shape) {
      return values.defined() ? g.constant(name + of, with_type(values.reshaped(std::move(shape)), type())) : kNoValue;
    };
    const ValueId rows = g.constant(name + ".rows", Tensor::of<std::int64_t>({2}, {-1, c.count}));
    const ValueId flat = g.node("Reshape", name + "/scores", {scores, rows});
    const std::vector<ValueId> in{x,
                                  flat,
                                  constant(".fc1", in_turn(stacked(t.gate), stacked(t.up), k), {c.count, 2 * f, k}),
                                  constant(".fc1_bias", in_turn(t.gate_bias, t.up_bias, 1), {c.count, 2 * f}),
                                  constant(".fc2", stacked(t.down), {c.count, k, f}),
                                  constant(".fc2_bias", t.down_bias, {c.count, k})};
    AttributeList a{{"k", c.used},
                    {"normalize_routing_weights", std::int64_t{c.normalize ? 1 : 0}},
                    {"activation_type", std::string("swiglu")},
                    {"swiglu_fusion", std::int64_t{1}},
                    {"activation_alpha", c.alpha},
                    {"activation_beta", c.beta}};
    if (std::isfinite(c.limit)) a.emplace_back("swiglu_limit", c.limit);
    const ValueId y = g.node("com.microsoft.MoE", name, in, a);
    return c.scale == 1.0F
               ? y
               : g.node("Mul", name + "/scaled", {y, g.constant(name + ".scale", with_type(Tensor::scalar(c.scale), type()))});
  }

  DataType type() const override { return style_ == FileWeights::float16 ? DataType::float16 : DataType::float32; }

 private:
  Tensor floats(const StoredTensor& weight, std::int64_t first, std::int64_t rows) const {
    const GgmlFormat& format = *find_ggml(weight.type);
    const std::int64_t k = weight.shape[1], row_bytes = format.row_bytes(k);
    Tensor out(DataType::float32, {rows, k});
    float* to = out.mutable_values<float>().data();
    in_parallel(rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        ggml_dequantize(format, weight.data.data() + (first + r) * row_bytes, k / format.block, to + r * k);
      }
    });
    return out;
  }

  Tensor stacked(const std::vector<StoredTensor>& parts) const {
    if (parts.size() == 1) return floats(parts[0], 0, parts[0].shape[0]);
    const std::int64_t rows = parts[0].shape[0], k = parts[0].shape[1];
    Tensor out(DataType::float32, {static_cast<std::int64_t>(parts.size()) * rows, k});
    float* to = out.mutable_values<float>().data();
    for (const StoredTensor& part : parts) {
      const Tensor values = floats(part, 0, rows);
      to = std::copy_n(values.values<float>().data(), rows * k, to);
    }
    return out;
  }

  // Rows of `k` elements of both in turn; undefined where one is.
  static Tensor in_turn(const Tensor& first, const Tensor& second, std::int64_t k) {
    if (!first.defined() || !second.defined()) return {};
    Tensor out(DataType::float32, {2 * first.size()});
    float* to = out.mutable_values<float>().data();
    const float *a = first.values<float>().data(), *b = second.values<float>().data();
    for (std::int64_t i = 0; i < first.size(); i += k) {
      to = std::copy_n(a + i, k, to);
      to = std::copy_n(b + i, k, to);
    }
    return out;
  }

  Tensor transposed(const StoredTensor& weight, std::int64_t first, std::int64_t rows) const {
    const Tensor in = floats(weight, first, rows);
    const std::int64_t k = weight.shape[1];
    Tensor out(DataType::float32, {k, rows});
    const float* from = in.values<float>().data();
    float* to = out.mutable_values<float>().data();
    constexpr std::int64_t kTile = 32;
    in_parallel((k + kTile - 1) / kTile, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin * kTile; t < std::min(k, end * kTile); t += kTile) {
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t i = t; i < std::min(k, t + kTile); ++i) to[i * rows + r] = from[r * k + i];
        }
      }
    });
    return out;
  }

  static Coded room_for(const CodeFormat& f, std::int64_t rows, std::int64_t k) {
    const std::int64_t blocks = k / f.block;
    Coded c{f, Tensor(DataType::uint8, {rows, blocks, f.block * f.bits / 8}), Tensor(DataType::float32, {rows, blocks}), {}};
    if (f.has_minimum) c.minimums = Tensor(DataType::float32, {blocks, rows});
    return c;
  }
  static void pack(const CodeFormat& f, const std::uint8_t* codes, std::int64_t count, std::uint8_t* to) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (f.bits == 8) {
        to[i] = codes[i];
      } else if (i % 2 == 0) {
        to[i / 2] = static_cast<std::uint8_t>(codes[i] | codes[i + 1] << 4);
      }
    }
  }

  static Coded as_stored(const StoredTensor& weight, std::int64_t first, std::int64_t rows) {
    const GgmlFormat& format = *find_ggml(weight.type);
    const std::int64_t k = weight.shape[1];
    Coded c = room_for(code_format(format.type), rows, k);
    const std::int64_t blocks = k / c.format.block, parts = format.block / c.format.block;
    auto* codes = c.codes.mutable_values<std::uint8_t>().data();
    float* scales = c.scales.mutable_values<float>().data();
    float* minimums = c.format.has_minimum ? c.minimums.mutable_values<float>().data() : nullptr;
    in_parallel(rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
      std::uint8_t some[256];
      float s[16] = {}, m[16] = {};
      for (std::int64_t r = begin; r < end; ++r) {
        const std::byte* from = weight.data.data() + (first + r) * format.row_bytes(k);
        for (std::int64_t b = 0; b < k / format.block; ++b, from += format.bytes) {
          take_apart(format, from, some, s, m);
          pack(c.format, some, format.block, codes + (r * k + b * format.block) * c.format.bits / 8);
          for (std::int64_t p = 0; p < parts; ++p) {
            scales[r * blocks + b * parts + p] = s[p];
            if (minimums != nullptr) minimums[(b * parts + p) * rows + r] = m[p];
          }
        }
      }
    });
    return c;
  }

  Coded round_anew(const StoredTensor& weight, std::int64_t first, std::int64_t rows) const {
    const int bits = style_ == FileWeights::int8 ? 8 : 4, zero = 1 << (bits - 1);
    const std::int64_t k = weight.shape[1];
    Coded c = room_for({32, bits, zero, false}, rows, k);
    const Tensor values = floats(weight, first, rows);
    const float* from = values.values<float>().data();
    auto* codes = c.codes.mutable_values<std::uint8_t>().data();
    float* scales = c.scales.mutable_values<float>().data();
    in_parallel(rows * (k / 32), 1024, [&](std::int64_t begin, std::int64_t end) {
      std::uint8_t some[32];
      for (std::int64_t b = begin; b < end; ++b) {
        const float* x = from + b * 32;
        float most = 0.0F;
        for (int i = 0; i < 32; ++i) {
          if (std::abs(x[i]) > std::abs(most)) most = x[i];
        }
        // The largest number gets the lowest code, -zero, because there is one more code on that side.
        const float scale = most / -static_cast<float>(zero);
        scales[b] = scale;
        for (int i = 0; i < 32; ++i) {
          const float q = scale == 0.0F ? 0.0F : std::nearbyint(x[i] / scale);
          some[i] = static_cast<std::uint8_t>(std::clamp(q + static_cast<float>(zero), 0.0F, static_cast<float>(2 * zero - 1)));
        }
        pack(c.format, some, 32, codes + b * 32 * bits / 8);
      }
    });
    return c;
  }

  // x times scale * (code - zero), and sums of x's blocks times the minimums, so that nothing is rounded into the weights.
  ValueId coded_product(GraphWriter& g, const std::string& name, ValueId x, const Coded& c, std::int64_t rows, std::int64_t k) {
    const CodeFormat& f = c.format;
    std::vector<ValueId> in{x, g.constant(name + ".codes", c.codes), g.constant(name + ".scales", c.scales)};
    if (f.zero != 1 << (f.bits - 1)) in.push_back(zero_points(g, f, rows, k / f.block));
    const ValueId y = g.node("com.microsoft.MatMulNBits", name + "/MatMul", in,
                             {{"K", k}, {"N", rows}, {"bits", std::int64_t{f.bits}}, {"block_size", f.block}});
    if (!f.has_minimum) return y;
    const ValueId low =
        g.node("MatMul", name + "/minimums", {block_sums(g, x, f.block, k), g.constant(name + ".minimums", c.minimums)});
    return g.node("Add", name + "/with_minimums", {y, low});
  }

  // The same for all matrices of one size.
  ValueId zero_points(GraphWriter& g, const CodeFormat& f, std::int64_t rows, std::int64_t blocks) {
    const std::string name = fmt::format("zero_points_{}_{}x{}_{}", f.zero, rows, blocks, f.bits);
    if (const auto known = g.graph().find(name)) return *known;
    const std::int64_t bytes = f.bits == 8 ? blocks : (blocks + 1) / 2;
    Tensor t(DataType::uint8, {rows, bytes});
    const int pair = f.bits == 8 ? f.zero : f.zero | f.zero << 4;
    std::fill_n(t.mutable_values<std::uint8_t>().data(), rows * bytes, static_cast<std::uint8_t>(pair));
    return g.constant(name, std::move(t));
  }

  ValueId block_sums(GraphWriter& g, ValueId x, std::int64_t block, std::int64_t k) {
    ValueId& sums = sums_[{x, block}];
    if (sums != 0) return sums;
    const std::string name = g.graph().value(x).name;
    const auto ints = [&](const std::string& what, std::initializer_list<std::int64_t> values) {
      if (const auto known = g.graph().find(what)) return *known;
      return g.constant(what, Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values));
    };
    const ValueId parts =
        g.node("Reshape", name + "/blocks", {x, ints(fmt::format("blocks_{}_{}", k, block), {0, 0, k / block, block})});
    return sums = g.node("ReduceSum", name + "/sums", {parts, ints("last_axis", {-1})}, {{"keepdims", std::int64_t{0}}});
  }

  std::shared_ptr<const TensorFiles> file_;
  FileWeights style_;
  std::map<std::pair<ValueId, std::int64_t>, ValueId> sums_;
};

}  // namespace

std::unique_ptr<WeightStyle> weights_for_file(std::shared_ptr<const TensorFiles> file, FileWeights style) {
  return std::make_unique<FileStyle>(std::move(file), style);
}

}  // namespace sdx::text
