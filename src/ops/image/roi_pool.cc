// RoiAlign: ai.onnx 10, 16 (coordinate_transformation_mode), 22. MaxRoiPool: ai.onnx 1, 22. CropAndResize: com.microsoft 1.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/image/signatures.h"
#include "ops/op.h"
#include "ops/tensor/gather_index.h"
#include "ops/tensor/shape_values.h"
#include "tensor/dispatch.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

constexpr std::int64_t kMaxSamples = std::int64_t{1} << 24;  // per bin; a region far larger than the map asks for more

void infer_regions(InferContext& c, const Dim& height, const Dim& width) {
  const SymShape* x = c.shape(0);
  const SymShape* rois = c.shape(1);
  if (x != nullptr && x->size() != 4) c.fail("the input must be of rank 4 (N, C, H, W), received {}", to_string(*x));
  if (rois != nullptr && rois->size() != 2) c.fail("'rois' must be of rank 2, received {}", to_string(*rois));
  c.output(0, c.dtype(0), SymShape{rois != nullptr ? (*rois)[0] : Dim(), x != nullptr ? (*x)[1] : Dim(), height, width});
}

struct MaxRoiPoolAttrs {
  IntList pooled_shape;
  float spatial_scale = 1;

  void fields(auto& f) {
    f.required("pooled_shape", pooled_shape);
    f("spatial_scale", spatial_scale);
  }
};

struct CropAndResizeAttrs {
  std::string_view mode = "bilinear";
  float extrapolation_value = 0;

  void fields(auto& f) {
    f("mode", mode);
    f("extrapolation_value", extrapolation_value);
  }
};

std::int64_t positive(std::int64_t v, const char* attribute) {
  if (v < 1) fail(ErrorCode::invalid_model, "'{}' must be positive, received {}", attribute, v);
  return v;
}

void check_regions(const OpContext& c, std::int64_t columns) {
  if (c.input(0).rank() != 4 || c.input(1).rank() != 2 || c.input(1).dim(1) != columns) {
    c.fail("expected an input (N, C, H, W) and rois (n, {}), received {} and {}", columns, c.input(0).type_string(),
           c.input(1).type_string());
  }
}

// The batch item of each region.
Ints region_batches(const OpContext& c, std::size_t input) {
  const Tensor& batches = c.input(input);
  if (batches.rank() != 1 || batches.size() != c.input(1).dim(0)) {
    c.fail("'batch_indices' must hold {} numbers, received {}", c.input(1).dim(0), batches.type_string());
  }
  return checked_indices(batches, c.input(0).dim(0));
}

constexpr std::int64_t kSamplesAtOnce = 4096;

// Four neighbours and their weights.
template <class C>
struct Sample {
  std::array<std::int64_t, 4> at;
  std::array<C, 4> weight;
};

// Source: ONNX RoiAlign-16: positions up to one pixel outside count as the edge, beyond that they weigh nothing.
template <class C>
Sample<C> sample_at(double y, double x, std::int64_t height, std::int64_t width) {
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return {{}, {}};
  const auto along = [](double v, std::int64_t extent, std::int64_t& low, std::int64_t& high) {
    v = std::max(v, 0.0);
    low = static_cast<std::int64_t>(v);
    if (low >= extent - 1) {
      low = high = extent - 1;
      return 0.0;
    }
    high = low + 1;
    return v - static_cast<double>(low);
  };
  std::int64_t y0 = 0, y1 = 0, x0 = 0, x1 = 0;
  const double ly = along(y, height, y0, y1);
  const double lx = along(x, width, x0, x1);
  return {{y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1},
          {static_cast<C>((1 - ly) * (1 - lx)), static_cast<C>((1 - ly) * lx), static_cast<C>(ly * (1 - lx)),
           static_cast<C>(ly * lx)}};
}

struct AlignOptions {
  std::int64_t out_h, out_w, ratio;
  double scale, offset;
  bool max, at_least_one;
};

std::int64_t samples_along(const OpContext& c, double bin, std::int64_t ratio) {
  const double n = ratio > 0 ? static_cast<double>(ratio) : std::ceil(bin);
  if (!(n <= static_cast<double>(kMaxSamples))) c.fail("a region asks for {} samples along one axis of a bin", n);
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(n));
}

// A bin without samples is 0.
template <class C, class T>
C average(const Sample<C>* samples, std::int64_t count, const T* plane) {
  if (count == 0) return C(0);
  C sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const Sample<C>& s = samples[i];
    const auto at = [&](std::size_t j) { return s.weight[j] * static_cast<C>(plane[s.at[j]]); };
    sum += (at(0) + at(1)) + (at(2) + at(3));
  }
  return sum / static_cast<C>(count);
}
template <class C, class T>
C strongest(const Sample<C>* samples, std::int64_t count, const T* plane) {
  if (count == 0) return C(0);
  C most = -std::numeric_limits<C>::infinity();
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < 4; ++j) most = std::max(most, samples[i].weight[j] * static_cast<C>(plane[samples[i].at[j]]));
  }
  return most;
}

template <class T>
void align_region(OpContext& c, const AlignOptions& o, const T* roi, const T* image, T* out) {
  const std::int64_t channels = c.input(0).dim(1);
  const std::int64_t height = c.input(0).dim(2);
  const std::int64_t width = c.input(0).dim(3);
  // Computed in the type of the data: in double, 5 * 0.8F is above 4, and the number of samples jumps.
  using C = ComputeType<T>;
  const auto edge = [&](int i) { return static_cast<C>(roi[i]) * static_cast<C>(o.scale) - static_cast<C>(o.offset); };
  const C left_edge = edge(0), top_edge = edge(1);
  C region_w = edge(2) - left_edge, region_h = edge(3) - top_edge;
  if (o.at_least_one) {
    region_w = std::max(region_w, C(1));
    region_h = std::max(region_h, C(1));
  }
  const auto x1 = static_cast<double>(left_edge), y1 = static_cast<double>(top_edge);
  const auto bin_h = static_cast<double>(region_h / static_cast<C>(o.out_h));
  const auto bin_w = static_cast<double>(region_w / static_cast<C>(o.out_w));
  const std::int64_t ny = samples_along(c, bin_h, o.ratio), nx = samples_along(c, bin_w, o.ratio);
  if (ny * nx > kMaxSamples) c.fail("a region asks for {} x {} samples per bin", ny, nx);
  // Bins are prepared in groups, so that each channel's plane is read once for many of them.
  const std::int64_t bins = o.out_h * o.out_w, per_bin = ny * nx;
  const std::int64_t group = std::clamp<std::int64_t>(kSamplesAtOnce / std::max<std::int64_t>(1, per_bin), 1, bins);
  std::vector<Sample<C>> samples(static_cast<std::size_t>(group * per_bin));
  for (std::int64_t first = 0; first < bins; first += group) {
    const std::int64_t end = std::min(bins, first + group);
    auto* next = samples.data();
    for (std::int64_t p = first; p < end; ++p) {
      c.stop().check();
      const std::int64_t row = p / o.out_w, column = p % o.out_w;
      const double top = y1 + static_cast<double>(row) * bin_h, left = x1 + static_cast<double>(column) * bin_w;
      for (std::int64_t i = 0; i < ny; ++i) {
        const double y = top + (static_cast<double>(i) + 0.5) * bin_h / static_cast<double>(ny);
        for (std::int64_t j = 0; j < nx; ++j) {
          const double x = left + (static_cast<double>(j) + 0.5) * bin_w / static_cast<double>(nx);
          *next++ = sample_at<C>(y, x, height, width);
        }
      }
    }
    for (std::int64_t k = 0; k < channels; ++k) {
      const T* plane = image + k * height * width;
      T* to = out + k * bins;
      for (std::int64_t p = first; p < end; ++p) {
        const auto* bin = samples.data() + (p - first) * per_bin;
        to[p] = T(o.max ? strongest(bin, per_bin, plane) : average(bin, per_bin, plane));
      }
    }
  }
}

void infer_roi_align(InferContext& c) {
  const auto attr = parse<RoiAlignAttrs>(c);
  infer_regions(c, positive(attr.output_height, "output_height"), positive(attr.output_width, "output_width"));
}

void run_roi_align(OpContext& c) {
  check_regions(c, 4);
  const Tensor& x = c.input(0);
  const Tensor& rois = c.input(1);
  const Ints batches = region_batches(c, 2);
  const auto attr = parse<RoiAlignAttrs>(c);
  const std::string_view mode = attr.mode;
  if (mode != "avg" && mode != "max") c.fail("'mode' must be avg or max, received {}", mode);
  const bool half = attr.coordinate_transformation_mode == "half_pixel";
  const AlignOptions o{positive(attr.output_height, "output_height"),
                       positive(attr.output_width, "output_width"),
                       attr.sampling_ratio,
                       static_cast<double>(attr.spatial_scale),
                       half ? 0.5 : 0.0,
                       mode == "max",
                       !half};
  Tensor& out = c.output(0, x.dtype(), {rois.dim(0), x.dim(1), o.out_h, o.out_w});
  if (out.size() == 0) return;
  if (x.size() == 0) c.fail("the input {} has no pixels", x.type_string());
  dispatch(x.dtype(), FloatTypes{}, "RoiAlign", [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(rois.dim(0), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const T* image = c.data<T>(0) + batches[static_cast<std::size_t>(r)] * x.dim(1) * x.dim(2) * x.dim(3);
        align_region(c, o, c.data<T>(1) + r * 4, image, static_cast<T*>(out.mutable_data()) + r * x.dim(1) * o.out_h * o.out_w);
      }
    });
  });
}

Ints pooled_shape(const MaxRoiPoolAttrs& attr) {
  Ints shape = to_vector(attr.pooled_shape);
  if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1) {
    fail(ErrorCode::invalid_model, "'pooled_shape' must hold two positive numbers, received {}", to_string(shape));
  }
  return shape;
}

void infer_max_roi_pool(InferContext& c) {
  const Ints shape = pooled_shape(parse<MaxRoiPoolAttrs>(c));
  infer_regions(c, shape[0], shape[1]);
}

// The pixel that a region's edge falls on; values beyond any image stay in range.
std::int64_t edge_pixel(double v) {
  if (!(v > -1e9)) return -1000000000;
  return v < 1e9 ? static_cast<std::int64_t>(std::round(v)) : 1000000000;
}

// Pixels [first, second) of the map that bin `p` of `bins` covers.
std::pair<std::int64_t, std::int64_t> bin_range(std::int64_t start, std::int64_t end, std::int64_t p, std::int64_t bins,
                                                std::int64_t extent) {
  const double size = static_cast<double>(std::max<std::int64_t>(end - start + 1, 1)) / static_cast<double>(bins);
  const auto low = static_cast<std::int64_t>(std::floor(static_cast<double>(p) * size)) + start;
  const auto high = static_cast<std::int64_t>(std::ceil(static_cast<double>(p + 1) * size)) + start;
  return {std::clamp<std::int64_t>(low, 0, extent), std::clamp<std::int64_t>(high, 0, extent)};
}

template <class T>
void pool_region(const OpContext& c, const T* roi, const T* image, const Ints& pooled, double scale, T* out) {
  const Tensor& x = c.input(0);
  const auto edge = [&](int i) { return edge_pixel(static_cast<double>(static_cast<ComputeType<T>>(roi[i])) * scale); };
  std::vector<std::pair<std::int64_t, std::int64_t>> rows, columns;  // of each bin
  for (std::int64_t p = 0; p < pooled[0]; ++p) rows.push_back(bin_range(edge(2), edge(4), p, pooled[0], x.dim(2)));
  for (std::int64_t p = 0; p < pooled[1]; ++p) columns.push_back(bin_range(edge(1), edge(3), p, pooled[1], x.dim(3)));
  for (std::int64_t k = 0; k < x.dim(1); ++k) {
    const T* plane = image + k * x.dim(2) * x.dim(3);
    for (const auto& [y0, y1] : rows) {
      for (const auto& [x0, x1] : columns) {
        bool any = false;
        ComputeType<T> most = 0;  // an empty bin is 0
        for (std::int64_t yy = y0; yy < y1; ++yy) {
          const T* row = plane + yy * x.dim(3);
          for (std::int64_t xx = x0; xx < x1; ++xx) {
            const auto v = static_cast<ComputeType<T>>(row[xx]);
            if (!any || v > most) most = v;
            any = true;
          }
        }
        *out++ = T(most);
      }
    }
  }
}

void run_max_roi_pool(OpContext& c) {
  check_regions(c, 5);
  const Tensor& x = c.input(0);
  const Tensor& rois = c.input(1);
  const auto attr = parse<MaxRoiPoolAttrs>(c);
  const Ints pooled = pooled_shape(attr);
  const auto scale = static_cast<double>(attr.spatial_scale);
  Tensor& out = c.output(0, x.dtype(), {rois.dim(0), x.dim(1), pooled[0], pooled[1]});
  dispatch(x.dtype(), FloatTypes{}, "MaxRoiPool", [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::int64_t r = 0; r < rois.dim(0); ++r) {
      c.stop().check();
      const T* roi = c.data<T>(1) + r * 5;
      const auto batch = static_cast<double>(static_cast<ComputeType<T>>(roi[0]));
      if (!(batch >= 0 && batch < static_cast<double>(x.dim(0)))) c.fail("region {} names batch item {}", r, batch);
      const T* image = c.data<T>(0) + static_cast<std::int64_t>(batch) * x.dim(1) * x.dim(2) * x.dim(3);
      T* to = static_cast<T*>(out.mutable_data()) + r * x.dim(1) * pooled[0] * pooled[1];
      pool_region(c, roi, image, pooled, scale, to);
    }
  });
}

void infer_crop(InferContext& c) {
  const auto* size = c.sym(3);
  const bool known = size != nullptr && size->size() == 2;
  infer_regions(c, known ? (*size)[0] : Dim(), known ? (*size)[1] : Dim());
}

// The position of row or column `i` of `n` in the image. Source: com.microsoft CropAndResize (normalised corners, as in
// TensorFlow).
double crop_position(double low, double high, std::int64_t i, std::int64_t n, std::int64_t extent) {
  const auto span = static_cast<double>(extent - 1);
  if (n <= 1) return 0.5 * (low + high) * span;
  return low * span + static_cast<double>(i) * (high - low) * span / static_cast<double>(n - 1);
}

void run_crop(OpContext& c) {
  check_regions(c, 4);
  const Tensor& x = c.input(0);
  const Tensor& rois = c.input(1);
  const Ints batches = region_batches(c, 2);
  const Ints size = to_ints(c.input(3));
  if (size.size() != 2 || size[0] < 1 || size[1] < 1) c.fail("'crop_size' must hold two positive numbers");
  const auto attr = parse<CropAndResizeAttrs>(c);
  const std::string_view mode = attr.mode;
  if (mode != "bilinear" && mode != "nearest") c.fail("'mode' must be bilinear or nearest, received {}", mode);
  const double outside = static_cast<double>(attr.extrapolation_value);
  const std::int64_t h = x.dim(2), w = x.dim(3), pixels = size[0] * size[1];
  Tensor& out = c.output(0, x.dtype(), {rois.dim(0), x.dim(1), size[0], size[1]});
  dispatch(x.dtype(), FloatTypes{}, "CropAndResize", [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* to = static_cast<T*>(out.mutable_data());
    for (std::int64_t r = 0; r < rois.dim(0) && out.size() > 0; ++r) {
      c.stop().check();
      const auto corner = [&](int i) { return static_cast<double>(static_cast<ComputeType<T>>(c.data<T>(1)[r * 4 + i])); };
      const T* image = c.data<T>(0) + batches[static_cast<std::size_t>(r)] * x.dim(1) * h * w;
      for (std::int64_t p = 0; p < pixels; ++p) {
        double y = crop_position(corner(0), corner(2), p / size[1], size[0], h);
        double xx = crop_position(corner(1), corner(3), p % size[1], size[1], w);
        const bool inside = y >= 0 && y <= static_cast<double>(h - 1) && xx >= 0 && xx <= static_cast<double>(w - 1);
        if (mode == "nearest") {
          y = std::round(y);
          xx = std::round(xx);
        }
        const Sample<double> s = inside ? sample_at<double>(y, xx, h, w) : Sample<double>{};
        for (std::int64_t k = 0; k < x.dim(1); ++k) {
          double v = inside ? 0 : outside;
          for (std::size_t j = 0; inside && j < 4; ++j) {
            v += s.weight[j] * static_cast<double>(static_cast<ComputeType<T>>(image[k * h * w + s.at[j]]));
          }
          to[(r * x.dim(1) + k) * pixels + p] = T(static_cast<ComputeType<T>>(v));
        }
      }
    }
  });
}

}  // namespace

void register_roi_pool(OpTable& t) {
  OpDef roi_align("RoiAlign", 10);
  roi_align.in("X rois", "T1", types::floats).in("batch_indices", "T2", types::int64);
  roi_align.out("Y", "T1", types::floats).attrs<RoiAlignAttrs>();
  t.add(std::move(roi_align).infer_with(infer_roi_align).run_with(run_roi_align));
  OpDef max_roi_pool("MaxRoiPool", 1);
  max_roi_pool.in("X rois", "T", types::floats).out("Y", "T", types::floats);
  max_roi_pool.attrs<MaxRoiPoolAttrs>();
  t.add(std::move(max_roi_pool).infer_with(infer_max_roi_pool).run_with(run_max_roi_pool));
  OpDef crop_and_resize("com.microsoft", "CropAndResize", 1);
  crop_and_resize.in("X rois", "T1", types::floats).in("batch_indices", "T2", types::indices);
  crop_and_resize.in("crop_size", "T2", types::indices).out("Y", "T1", types::floats).attrs<CropAndResizeAttrs>();
  t.add(std::move(crop_and_resize).infer_with(infer_crop).run_with(run_crop));
}

}  // namespace sdx::ops
