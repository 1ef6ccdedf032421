#include "kernels/cpu/order/reductions.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/elements/functions.h"
#include "kernels/cpu/elements/type_list.h"
#include "kernels/cpu/order/folds_simd.h"
#include "tensor/element.h"

namespace sdx::cpu {
namespace {

constexpr std::int64_t kGrain = 16384;
// The number of elements that are converted at a time, and of columns side by side: they stay in the first-level cache.
constexpr std::int64_t kSome = 256;

bool is_extreme(Reduce op) { return op == Reduce::max || op == Reduce::min; }
bool is_real(Reduce op) { return op == Reduce::norm || op == Reduce::log_sum || op == Reduce::log_sum_exp; }
std::size_t bytes_of(DataType type) { return static_cast<std::size_t>(bit_width(type)) / 8; }
bool is_unsigned(DataType type) {
  return type == DataType::uint8 || type == DataType::uint16 || type == DataType::uint32 || type == DataType::uint64;
}
// Returns uint8 for booleans, which are bytes, and other types as they are.
DataType as_number(DataType type) { return type == DataType::boolean ? DataType::uint8 : type; }

using ConvertRow = void (*)(const void* x, void* y, std::int64_t n);

template <class To, class From>
void convert_row(const void* x, void* y, std::int64_t n) {
  const auto* px = static_cast<const From*>(x);
  std::copy_n(px, n, static_cast<To*>(y));
}

template <class To>
ConvertRow conversion(DataType from) {
  switch (from) {
    case DataType::uint8: return convert_row<To, std::uint8_t>;
    case DataType::uint16: return convert_row<To, std::uint16_t>;
    case DataType::uint32: return convert_row<To, std::uint32_t>;
    case DataType::uint64: return convert_row<To, std::uint64_t>;
    case DataType::int8: return convert_row<To, std::int8_t>;
    case DataType::int16: return convert_row<To, std::int16_t>;
    case DataType::int32: return convert_row<To, std::int32_t>;
    case DataType::int64: return convert_row<To, std::int64_t>;
    default: return nullptr;
  }
}

// Returns the conversion between two types, or null if they are the same.
ConvertRow conversion(DataType from, DataType to) {
  if (from == to) return nullptr;
  return to == DataType::float64 ? conversion<double>(from) : conversion<std::int64_t>(from);
}

// What is done to elements before they are combined.
struct Source {
  ConvertRow convert = nullptr;  // null: nothing
  UnaryRow map = nullptr;        // likewise
  std::size_t bytes = 0;         // of an element

  bool is_plain() const { return convert == nullptr && map == nullptr; }
  const char* at(const void* x, std::int64_t i) const {
    return static_cast<const char*>(x) + static_cast<std::size_t>(i) * bytes;
  }
  // Loads n <= kSome elements, converted and mapped; the first is number i.
  const void* load(const void* x, std::int64_t i, std::int64_t n, void* buffer) const {
    const void* from = at(x, i);
    if (convert != nullptr) {
      convert(from, buffer, n);
      from = buffer;
    }
    if (map == nullptr) return from;
    map(from, buffer, n);
    return buffer;
  }
};

void fold_row(const Source& s, const Fold& by, const void* x, std::int64_t first, std::int64_t n, void* y) {
  if (s.is_plain()) return by.row(s.at(x, first), n, y);
  alignas(64) char buffer[kSome * 8];
  alignas(8) char part[8];
  for (std::int64_t i = 0; i < n; i += kSome) {
    const std::int64_t some = std::min(kSome, n - i);
    by.row(s.load(x, first + i, some, buffer), some, i == 0 ? y : part);
    if (i > 0) by.merge(part, 1, y);
  }
}

void fold_columns(const Source& s, const Fold& by, std::size_t bytes, const void* x, std::int64_t first, const Lanes& e,
                  std::int64_t width, void* y) {
  alignas(64) char buffer[kSome * 8];
  std::memcpy(y, s.load(x, first, width, buffer), static_cast<std::size_t>(width) * bytes);
  for (std::int64_t r = 1; r < e.count; ++r) by.merge(s.load(x, first + r * e.inner, width, buffer), width, y);
}

// Calls row(first element, n, y) or columns(first element, width, y) for all parts. An element of y has `bytes` bytes.
template <class Row, class Columns>
void over_lanes(const Lanes& e, std::size_t bytes, void* y, const Row& row, const Columns& columns) {
  const auto out = [&](std::int64_t i) { return static_cast<char*>(y) + static_cast<std::size_t>(i) * bytes; };
  const std::int64_t each = std::max<std::int64_t>(1, kGrain / e.count);
  if (e.inner == 1) {
    return parallel_for(e.outer, each, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = begin; o < end; ++o) row(o * e.count, out(o));
    });
  }
  const std::int64_t strip = std::min(e.inner, e.outer > 8 ? kSome : kSome / 2), strips = (e.inner + strip - 1) / strip;
  parallel_for(e.outer * strips, std::max<std::int64_t>(1, each / strip), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t o = t / strips, c = t % strips * strip;
      columns(o * e.count * e.inner + c, std::min(strip, e.inner - c), out(o * e.inner + c));
    }
  });
}

void fold_lanes(const Source& s, const Fold& by, std::size_t bytes, const void* x, void* y, const Lanes& e) {
  // Few long rows are cut into parts of fixed length, so that results do not depend on the number of threads.
  if (e.inner == 1 && e.outer < 8 && e.count > 4 * kGrain) {
    const std::int64_t parts = (e.count + kGrain - 1) / kGrain;
    std::vector<std::uint64_t> each(static_cast<std::size_t>(e.outer * parts));
    auto* const part = reinterpret_cast<char*>(each.data());
    parallel_for(e.outer * parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) {
        const std::int64_t at = p % parts * kGrain;
        fold_row(s, by, x, p / parts * e.count + at, std::min(kGrain, e.count - at), part + static_cast<std::size_t>(p) * bytes);
      }
    });
    for (std::int64_t o = 0; o < e.outer; ++o) {
      by.row(part + static_cast<std::size_t>(o * parts) * bytes, parts,
             static_cast<char*>(y) + static_cast<std::size_t>(o) * bytes);
    }
    return;
  }
  over_lanes(
      e, bytes, y, [&](std::int64_t first, void* to) { fold_row(s, by, x, first, e.count, to); },
      [&](std::int64_t first, std::int64_t width, void* to) { fold_columns(s, by, bytes, x, first, e, width, to); });
}

// --- logarithms of sums of exponentials, in float64: from the largest element, so that nothing overflows

struct LogSumExp {
  Source source;
  const Fold& largest = extremes(DataType::float64, true);
  const Fold& sum = sums(DataType::float64);
  UnaryRow exp = unary_row(UnaryFn::exp, DataType::float64);

  // A smaller term is nothing beside the largest one, which is 1; the vectors' formula holds down to it.
  static constexpr double kLeast = -700;
  // Returns the logarithm of `total`, shifted back by `top`. If `top` is infinite or NaN, so is the result.
  static double joined(double top, double total) { return std::isfinite(top) ? top + std::log(total) : top; }

  void row(const void* x, std::int64_t first, std::int64_t n, double* y) const {
    double top = 0, total = 0, buffer[kSome];
    fold_row(source, largest, x, first, n, &top);
    for (std::int64_t i = 0; i < n && std::isfinite(top); i += kSome) {
      const std::int64_t some = std::min(kSome, n - i);
      const auto* from = static_cast<const double*>(source.load(x, first + i, some, buffer));
      for (std::int64_t k = 0; k < some; ++k) buffer[k] = std::max(from[k] - top, kLeast);
      exp(buffer, buffer, some);
      double part = 0;
      sum.row(buffer, some, &part);
      total += part;
    }
    *y = joined(top, total);
  }

  void columns(const void* x, std::int64_t first, const Lanes& e, std::int64_t width, double* y) const {
    double top[kSome], total[kSome] = {}, buffer[kSome];
    fold_columns(source, largest, sizeof(double), x, first, e, width, top);
    for (std::int64_t r = 0; r < e.count; ++r) {
      const auto* from = static_cast<const double*>(source.load(x, first + r * e.inner, width, buffer));
      for (std::int64_t k = 0; k < width; ++k) buffer[k] = std::max(from[k] - top[k], kLeast);
      exp(buffer, buffer, width);
      sum.merge(buffer, width, total);
    }
    for (std::int64_t k = 0; k < width; ++k) y[k] = joined(top[k], total[k]);
  }
};

const Fold& fold_of(Reduce op, DataType type) {
  if (is_extreme(op)) return extremes(as_number(type), op == Reduce::max);
  return op == Reduce::product ? products(type) : sums(type);
}

// Reduces x of type `from`, computing in `type`: converts each element, applies op's function to it (squares, absolute values),
// and combines.
void reduce_as(Reduce op, DataType from, DataType type, const void* x, void* y, const Lanes& e) {
  Source s;
  s.bytes = bytes_of(from);
  s.convert = conversion(from, type);
  if (op == Reduce::log_sum_exp) {
    const LogSumExp by{s};
    return over_lanes(
        e, sizeof(double), y, [&](std::int64_t first, void* to) { by.row(x, first, e.count, static_cast<double*>(to)); },
        [&](std::int64_t first, std::int64_t width, void* to) { by.columns(x, first, e, width, static_cast<double*>(to)); });
  }
  if (op == Reduce::sum_square || op == Reduce::norm) s.map = unary_row(UnaryFn::square, type);
  if (op == Reduce::sum_abs && !is_unsigned(type)) s.map = unary_row(UnaryFn::abs, type);
  fold_lanes(s, fold_of(op, type), bytes_of(type), x, y, e);
}

template <class T>
void last_step(Reduce op, const void* x, T* y, std::int64_t n, std::int64_t count) {
  if constexpr (std::is_integral_v<T>) {
    if (op == Reduce::mean) {
      using W = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
      const auto* sums = static_cast<const W*>(x);
      for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(sums[i] / static_cast<W>(count));
      return;
    }
  }
  const auto* from = static_cast<const double*>(x);
  for (std::int64_t i = 0; i < n; ++i) {
    double v = from[i];
    if (op == Reduce::mean) v /= static_cast<double>(count);
    if (op == Reduce::norm) v = std::sqrt(v);
    if (op == Reduce::log_sum) v = std::log(v);
    y[i] = saturating_cast<T>(v);
  }
}

}  // namespace

bool reduces_typed(Reduce op, DataType type) {
  if (type == DataType::boolean) return is_extreme(op);
  return is_integer(type) ? sums(type).row != nullptr : type == DataType::float64;
}

DataType partial_type(Reduce op, DataType type) {
  if (is_real(op)) return DataType::float64;
  if (op != Reduce::mean || !is_integer(type)) return type;
  return is_unsigned(type) ? DataType::uint64 : DataType::int64;
}

void reduce_typed(Reduce op, DataType type, const void* x, void* y, const Lanes& e) {
  reduce_as(op, type, partial_type(op, type), x, y, e);
}

void reduce_partial(Reduce op, DataType type, const void* x, void* y, const Lanes& e) {
  const DataType partial = partial_type(op, type);
  const bool same = is_extreme(op) || op == Reduce::product || op == Reduce::log_sum_exp;
  reduce_as(same ? op : Reduce::sum, partial, partial, x, y, e);
}

bool has_last_step(Reduce op, DataType type) {
  return op == Reduce::mean || partial_type(op, type) != type || op == Reduce::norm || op == Reduce::log_sum;
}

void reduce_last_step(Reduce op, DataType type, const void* x, void* y, std::int64_t n, std::int64_t count) {
  with_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>) last_step(op, x, static_cast<T*>(y), n, count);
  });
}

}  // namespace sdx::cpu
