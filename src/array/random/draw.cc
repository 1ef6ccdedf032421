// Random bits, and uniform and normal numbers made of them in one pass.

#include <algorithm>
#include <cmath>
#include <cstring>

#include <sdx/array.hpp>

#include "array/array_op.h"
#include "array/ops/common.h"
#include "array/random/keys.h"
#include "array/random/threefry.h"
#include "array/transforms/tape.h"
#include "base/parallel.h"

namespace sdx::array {
namespace detail {
namespace {

// params.ints holds what is drawn and, for uniform numbers, the bits of the largest float below 1 in the type to which they are
// rounded.
enum class Draw : std::int64_t { bits, uniform, normal, inverse_erf };

constexpr std::int64_t kBlock = 512;

// Calls take(words, first, count) for the words of the sequence [0, count), in pieces that stay in the first-level cache.
template <class Take>
void each_piece(Key key, std::int64_t count, const Take& take) {
  const std::int64_t pairs = count / 2, half = (count + 1) / 2;
  in_parallel((pairs + kBlock - 1) / kBlock, 8, [&](std::int64_t first, std::int64_t last) {
    std::uint32_t low[kBlock], high[kBlock];
    for (std::int64_t p = first; p < last; ++p) {
      const std::int64_t begin = p * kBlock, end = std::min(pairs, begin + kBlock);
      words({key, begin, end, half}, low, high);
      take(low, begin, end - begin);
      take(high, begin + half, end - begin);
    }
  });
  if (count % 2 == 0) return;
  // With an odd count, the last block has no partner: its counter ends in 0.
  const std::uint32_t last = threefry(key, static_cast<std::uint32_t>(pairs), 0).first;
  take(&last, pairs, 1);
}

void draw_bytes(Key key, std::byte* out, std::int64_t bytes) {
  each_piece(key, (bytes + 3) / 4, [&](const std::uint32_t* words, std::int64_t first, std::int64_t count) {
    std::memcpy(out + 4 * first, words, static_cast<std::size_t>(std::min(4 * count, bytes - 4 * first)));
  });
}

struct Floats {
  Draw what = Draw::uniform;
  Spread spread;
};

void draw_floats(Key key, const Floats& floats, float* out, std::int64_t count) {
  each_piece(key, count, [&](const std::uint32_t* words, std::int64_t first, std::int64_t n) {
    uniform_floats(words, n, floats.spread, out + first);
    if (floats.what == Draw::normal) inverse_erf_floats(out + first, n, std::sqrt(2.0F));
    if (floats.what == Draw::inverse_erf) inverse_erf_floats(out + first, n, 1.0F);
  });
}

// Makes each number from 53 bits of the two halves of a block.
void draw_doubles(Key key, double* out, std::int64_t count) {
  in_parallel(count, 8192, [&](std::int64_t first, std::int64_t last) {
    std::uint32_t low[kBlock], high[kBlock];
    for (std::int64_t begin = first; begin < last; begin += kBlock) {
      const std::int64_t end = std::min(last, begin + kBlock);
      words({key, begin, end, count}, low, high);
      for (std::int64_t i = begin; i < end; ++i) {
        const std::uint64_t all = std::uint64_t{low[i - begin]} << 32 | high[i - begin];
        out[i] = static_cast<double>(all >> 11) * 0x1p-53;
      }
    }
  });
}

Floats floats_of(const ops::OpContext& c, const std::vector<std::int64_t>& ints) {
  Floats floats;
  floats.what = static_cast<Draw>(ints[0]);
  const auto most = static_cast<std::uint32_t>(ints[1]);
  std::memcpy(&floats.spread.most, &most, sizeof most);
  if (c.num_inputs() == 3) {
    floats.spread.low = *c.data<float>(1);
    floats.spread.range = *c.data<float>(2) - floats.spread.low;
  } else if (floats.what != Draw::uniform) {
    floats.spread.low = std::nextafter(-1.0F, 0.0F);
    floats.spread.range = 1.0F - floats.spread.low;
  }
  return floats;
}

void run_draw(ops::OpContext& c) {
  const std::vector<std::int64_t> ints = c.attrs().get_ints("ints");
  Tensor& out = result_tensor(c);
  const std::int64_t keys = c.input(0).size() / 2;
  if (keys == 0 || out.size() == 0) return;
  const std::int64_t count = out.size() / keys, bytes = static_cast<std::int64_t>(out.bytes()) / keys;
  auto* at = static_cast<std::byte*>(out.mutable_data());
  for (std::int64_t k = 0; k < keys; ++k, at += bytes) {
    const Key key{c.data<std::uint32_t>(0)[2 * k], c.data<std::uint32_t>(0)[2 * k + 1]};
    if (static_cast<Draw>(ints[0]) == Draw::bits) {
      draw_bytes(key, at, bytes);
    } else if (out.dtype() == Dtype::float64) {
      draw_doubles(key, reinterpret_cast<double*>(at), count);
    } else {
      draw_floats(key, floats_of(c, ints), reinterpret_cast<float*>(at), count);
    }
  }
}

void emit_draw(Emitter& e) { e.results<run_draw>("Draw", e.inputs(), {{"ints", e.params().ints}}); }

extern const Kind kDraw;

// params.ints of the operation holds the two numbers above, the element type, and the shape that is drawn for one key.
array draw(const array& keys, const Params& params, const std::vector<array>& bounds, const StreamOrDevice& s) {
  Shape shape(keys.shape().begin(), keys.shape().end() - 1);
  shape.insert(shape.end(), params.ints.begin() + 3, params.ints.end());
  std::vector<array> inputs{keys};
  inputs.insert(inputs.end(), bounds.begin(), bounds.end());
  return make(kDraw, static_cast<Dtype>(params.ints[2]), std::move(shape), std::move(inputs), params, s);
}

// Each element of the batch has a key.
VmapResult draw_vmap(const VmapCall& c) {
  for (std::size_t i = 1; i < c.in_axes.size(); ++i) {
    if (c.in_axes[i] >= 0) refuse("vmap", "bounds of random numbers must be the same for the whole batch");
  }
  return {{draw(moveaxis(c.inputs[0], c.in_axes[0], 0), c.params, {c.inputs.begin() + 1, c.inputs.end()}, {})}, {0}};
}

// Numbers jump when a key or a bound changes. Where bounds are differentiated, they are applied by operations after the drawing.
std::vector<array> draw_vjp(const VjpCall& c) {
  std::vector<array> zeros;
  for (const std::size_t i : c.wanted) zeros.push_back(zeros_of(c.inputs[i]));
  return zeros;
}

const Kind kDraw{.name = "random", .emit = emit_draw, .vjp = draw_vjp, .vmap = draw_vmap};

struct Request {
  const char* name;
  Draw what;
  Dtype dtype;
  Dtype most_of = Dtype::float32;  // uniform numbers stay below 1 in this type
};

std::uint32_t most_below_one(Dtype dtype) {
  const float most = dtype == Dtype::float16 ? 1 - 0x1p-11F : dtype == Dtype::bfloat16 ? 1 - 0x1p-8F : 1 - 0x1p-24F;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &most, sizeof bits);
  return bits;
}

array drawn(const Request& r, const Shape& shape, const random::OptionalKey& given, const std::vector<array>& bounds,
            const StreamOrDevice& s) {
  for (const std::int64_t extent : shape) {
    if (extent < 0) refuse(r.name, "{} is not a shape", to_string(shape));
  }
  const array key = key_or_next(given);
  if (key.dtype() != Dtype::uint32 || key.shape() != Shape{2}) {
    refuse(r.name, "a key must be uint32[2], received {}{}", name(key.dtype()), to_string(key.shape()));
  }
  Params params;
  params.ints = {static_cast<std::int64_t>(r.what), most_below_one(r.most_of), static_cast<std::int64_t>(r.dtype)};
  params.ints.insert(params.ints.end(), shape.begin(), shape.end());
  return draw(key, params, bounds, s);
}

bool plain_number(const array& a) { return a.ndim() == 0 && a.is_evaluated() && a.node()->traced == 0; }

void need_floating(const char* operation, Dtype dtype) {
  if (!is_floating(dtype)) refuse(operation, "expected a floating-point type, received {}", name(dtype));
}

// Converts whole numbers and floats alike to `dtype`, without an operation for a single number.
array number_as(const array& a, Dtype dtype, const StreamOrDevice& s) {
  if (a.dtype() == dtype) return a;
  return plain_number(a) && dtype == Dtype::float32 ? array(a.item<float>()) : as_type(a, dtype, s);
}

// The real and the imaginary part have half of the variance each.
array complex_normal(const Shape& shape, const std::optional<array>& loc, const std::optional<array>& scale,
                     const random::OptionalKey& key, const StreamOrDevice& s) {
  Shape parts = shape;
  parts.push_back(2);
  const array pairs = drawn({"normal", Draw::inverse_erf, Dtype::float32}, parts, key, {}, s);
  array samples = squeeze(view(pairs, Dtype::complex64, s), -1, s);
  if (scale) samples = multiply(*scale, samples, s);
  return loc ? add(*loc, samples, s) : samples;
}

}  // namespace
}  // namespace detail

namespace random {

using namespace detail;

array bits(const Shape& shape, int width, const OptionalKey& key, StreamOrDevice s) {
  const Dtype dtype = width == 1   ? Dtype::uint8
                      : width == 2 ? Dtype::uint16
                      : width == 4 ? Dtype::uint32
                      : width == 8 ? Dtype::uint64
                                   : Dtype::undefined;
  if (dtype == Dtype::undefined) refuse("bits", "elements must have 1, 2, 4 or 8 bytes, received {}", width);
  return drawn({"bits", Draw::bits, dtype}, shape, key, {}, s);
}

array uniform(const array& low, const array& high, const Shape& shape, Dtype dtype, const OptionalKey& key, StreamOrDevice s) {
  need_floating("uniform", dtype);
  if (broadcast("uniform", shape, broadcast("uniform", low.shape(), high.shape())) != shape) {
    refuse("uniform", "bounds of shapes {} and {} do not broadcast to {}", to_string(low.shape()), to_string(high.shape()),
           to_string(shape));
  }
  if (dtype == Dtype::float32 && plain_number(low) && plain_number(high)) {
    return drawn({"uniform", Draw::uniform, dtype}, shape, key, {number_as(low, dtype, s), number_as(high, dtype, s)}, s);
  }
  const array lo = as_type(low, dtype, s), hi = as_type(high, dtype, s);
  const array unit = uniform(shape, dtype, key, s);
  return add(multiply(add(hi, multiply(lo, array(-1, dtype), s), s), unit, s), lo, s);
}

array uniform(const Shape& shape, Dtype dtype, const OptionalKey& key, StreamOrDevice s) {
  need_floating("uniform", dtype);
  const Dtype made = dtype == Dtype::float64 ? dtype : Dtype::float32;
  return as_type(drawn({"uniform", Draw::uniform, made, dtype}, shape, key, {}, s), dtype, s);
}

array normal(const Shape& shape, Dtype dtype, const std::optional<array>& loc, const std::optional<array>& scale,
             const OptionalKey& key, StreamOrDevice s) {
  if (dtype == Dtype::complex64) return complex_normal(shape, loc, scale, key, s);
  need_floating("normal", dtype);
  const bool plain = dtype == Dtype::float32 && !scale;
  array samples = drawn({"normal", plain ? Draw::normal : Draw::inverse_erf, Dtype::float32}, shape, key, {}, s);
  if (!plain) {
    array factor(std::sqrt(2.0), dtype);
    if (scale) factor = multiply(factor, as_type(*scale, dtype, s), s);
    samples = multiply(factor, as_type(samples, dtype, s), s);
  }
  return loc ? add(as_type(*loc, dtype, s), samples, s) : samples;
}

}  // namespace random
}  // namespace sdx::array
