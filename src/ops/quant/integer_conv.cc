#include "ops/quant/integer_conv.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "ops/quant/integer_gemm.h"
#include "ops/quant/quant_codec.h"
#include "ops/tensor/axes.h"

namespace sdx::ops {
namespace {

// For each tap of each output position of a tile, the place that it reads in one channel's plane; -1: in the padding.
void plan_tile(const ConvGeometry& g, std::int64_t begin, std::int64_t count, std::vector<std::int64_t>& table) {
  const std::size_t rank = g.axes.size();
  const std::int64_t taps = g.kernel_taps();
  table.assign(static_cast<std::size_t>(taps * count), 0);
  std::vector<std::int64_t> tap(rank, 0);
  for (std::int64_t t = 0; t < taps; ++t) {
    std::int64_t* row = table.data() + t * count;
    for (std::int64_t j = 0; j < count; ++j) {
      std::int64_t rest = begin + j;
      std::int64_t offset = 0;
      std::int64_t stride = 1;
      for (std::size_t a = rank; a-- > 0;) {
        const WindowAxis& axis = g.axes[a];
        const std::int64_t at = axis.start(rest % axis.out) + tap[a] * axis.dilation;
        rest /= axis.out;
        if (at < 0 || at >= axis.in) {
          offset = -1;
          break;
        }
        offset += at * stride;
        stride *= axis.in;
      }
      row[j] = offset;
    }
    for (std::size_t a = rank; a-- > 0;) {
      if (++tap[a] < g.axes[a].kernel) break;
      tap[a] = 0;
    }
  }
}

template <class T>
void gather(const T* plane, std::int32_t zero, const std::int64_t* table, std::int64_t count, std::int16_t* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = table[i] < 0 ? std::int16_t{0} : static_cast<std::int16_t>(plane[table[i]] - zero);
  }
}

struct IntegerConvRun {
  const OpContext& context;
  const IntegerConv& conv;
  const ConvSink& sink;
  std::vector<std::int16_t> weights;  // zero points taken off
  std::int64_t depth;                 // channels per group * taps
  std::int64_t tile;

  void run(std::int64_t batch, std::int64_t begin, std::int64_t count) const {
    context.stop().check();
    const ConvGeometry& g = conv.geometry;
    std::vector<std::int64_t> table;
    plan_tile(g, begin, count, table);
    const std::int64_t channels = g.in_channels_per_group();
    const std::int64_t taps = g.kernel_taps();
    const std::int64_t m = g.out_channels_per_group();
    std::vector<std::int16_t> columns(static_cast<std::size_t>(depth * count));
    std::vector<std::int32_t> sums(static_cast<std::size_t>(m * count));
    for (std::int64_t group = 0; group < g.groups; ++group) {
      for (std::int64_t ch = 0; ch < channels; ++ch) {
        const std::int64_t plane = (batch * g.in_channels + group * channels + ch) * g.in_plane();
        std::int16_t* to = columns.data() + ch * taps * count;
        if (conv.x->dtype() == DataType::int8) {
          gather(static_cast<const std::int8_t*>(conv.x->data()) + plane, conv.x_zero, table.data(), taps * count, to);
        } else {
          gather(static_cast<const std::uint8_t*>(conv.x->data()) + plane, conv.x_zero, table.data(), taps * count, to);
        }
      }
      integer_gemm(m, count, depth, weights.data() + group * m * depth, depth, columns.data(), count, sums.data(), count);
      for (std::int64_t i = 0; i < m; ++i) sink(batch, group * m + i, begin, count, sums.data() + i * count);
    }
  }
};

}  // namespace

std::vector<std::int32_t> channel_zero_points(const Tensor* zero, DataType w, std::int64_t channels) {
  if (zero == nullptr) return {};
  if (zero->dtype() != w) {
    fail(ErrorCode::invalid_model, "w_zero_point is {}, w is {}; they must have the same type", name(zero->dtype()), name(w));
  }
  if (zero->size() != 1 && (zero->size() != channels || zero->rank() != 1)) {
    fail(ErrorCode::invalid_model,
         "w_zero_point has shape {}; expected a scalar or one element for each of the {} output channels",
         to_string(zero->shape()), channels);
  }
  return decode_ints(*zero);
}

void integer_conv(const OpContext& c, const IntegerConv& conv, const ConvSink& sink) {
  const ConvGeometry& g = conv.geometry;
  const std::int64_t plane = g.out_plane();
  if (g.batch == 0 || g.out_channels == 0 || plane == 0) return;
  const std::int64_t depth = conv.w->size() / g.out_channels;
  if (depth == 0) {  // no input channels: sums of nothing
    const std::vector<std::int32_t> zeros(static_cast<std::size_t>(plane));
    for (std::int64_t b = 0; b < g.batch; ++b) {
      for (std::int64_t m = 0; m < g.out_channels; ++m) sink(b, m, 0, plane, zeros.data());
    }
    return;
  }
  // A tile's columns should stay in a second-level cache (256 KiB), and there should be tiles for every thread.
  const std::int64_t tile = std::min(plane, std::clamp<std::int64_t>(131072 / depth, 16, 256));
  IntegerConvRun job{c, conv, sink, std::vector<std::int16_t>(static_cast<std::size_t>(conv.w->size())), depth, tile};
  for (std::int64_t m = 0; m < g.out_channels; ++m) {
    const std::int32_t zero = conv.w_zero.empty() ? 0 : conv.w_zero[conv.w_zero.size() == 1 ? 0 : static_cast<std::size_t>(m)];
    widen(conv.w->dtype(), conv.w->data(), m * depth, depth, zero, job.weights.data() + m * depth);
  }
  const std::int64_t tiles = ceil_div(plane, tile);
  parallel_for(g.batch * tiles, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t from = (i % tiles) * tile;
      job.run(i / tiles, from, std::min(tile, plane - from));
    }
  });
}

Tensor channels_first(const Tensor& bytes) {
  const Shape& s = bytes.shape();
  if (s.size() < 2) fail(ErrorCode::invalid_model, "channels_last needs rank 2 or more, received {}", to_string(s));
  Shape shape{s[0], s.back()};
  shape.insert(shape.end(), s.begin() + 1, s.end() - 1);
  Tensor out(bytes.dtype(), shape);
  const std::int64_t plane = product(s, 1, s.size() - 1);
  const std::int64_t channels = s.back();
  const auto* in = static_cast<const std::uint8_t*>(bytes.data());
  auto* to = static_cast<std::uint8_t*>(out.mutable_data());
  if (bytes.size() == 0) return out;
  for (std::int64_t n = 0; n < s[0]; ++n) {
    for (std::int64_t ch = 0; ch < channels; ++ch) {
      for (std::int64_t p = 0; p < plane; ++p) *to++ = in[(n * plane + p) * channels + ch];
    }
  }
  return out;
}

void channels_last(const std::uint8_t* from, const Shape& first_shape, std::uint8_t* to) {
  const std::int64_t plane = product(first_shape, 2, first_shape.size());
  const std::int64_t channels = first_shape[1];
  if (plane == 0 || channels == 0) return;
  for (std::int64_t n = 0; n < first_shape[0]; ++n) {
    for (std::int64_t p = 0; p < plane; ++p) {
      for (std::int64_t ch = 0; ch < channels; ++ch) *to++ = from[(n * channels + ch) * plane + p];
    }
  }
}

}  // namespace sdx::ops
