#include "kernels/cpu/elementwise/chain.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/thread_pool.h"
#include "kernels/cpu/elementwise/cast_simd.h"
#include "kernels/cpu/elementwise/convert_simd.h"
#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/elementwise/math_simd.h"
#include "kernels/cpu/rows/reduce_simd.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

// Intermediate results stay within a part of the first-level cache that leaves room for operands and results. A chain of eight
// functions of a million doubles then takes 1.0 ms, and 1.6 ms with tiles four times as large. Tiles have a least size, because
// each call of a step takes some 5 ns.
constexpr std::int64_t kTileBytes = 6 << 10, kLeastTile = 256, kMostTile = 4096;
// Periodic inputs of up to this many elements are expanded once per thread, and then read at their phase.
constexpr std::int64_t kMostPeriod = 2048;

// Rows up to this many elements are folded whole.
constexpr std::int64_t kMostRow = 8192;

// Whether a function takes a different path for vectors that hold certain elements, so that tiles must begin where vectors do.
bool minds_vectors(const ChainStep& s) {
  using Kind = ChainStep::Kind;
  return s.kind == Kind::math || (s.kind == Kind::unary && s.spec.op == Unary::exp);
}

constexpr std::int64_t kVector = 64;  // elements: a multiple of any vector's size

bool any_minds_vectors(std::span<const ChainStep> steps) { return std::any_of(steps.begin(), steps.end(), minds_vectors); }

// Number of rows after which a vector begins.
std::int64_t rows_at_once(std::span<const ChainStep> steps, std::int64_t row) {
  return any_minds_vectors(steps) ? kVector / std::gcd(row, kVector) : 1;
}

bool is_costly(const ChainStep& s) {
  using Kind = ChainStep::Kind;
  if (s.kind == Kind::math || s.kind == Kind::remainder) return true;
  if (s.kind == Kind::binary) return s.binary == Binary::pow;
  return s.kind == Kind::unary && s.spec.op >= Unary::sigmoid && s.spec.op <= Unary::erf && s.spec.op != Unary::abs &&
         s.spec.op != Unary::neg && s.spec.op != Unary::sqrt && s.spec.op != Unary::reciprocal;
}

template <class T>
void fill_with(const char* from, char* to, std::int64_t n) {
  T value;
  std::memcpy(&value, from, sizeof value);
  auto* y = reinterpret_cast<T*>(to);
  for (std::int64_t i = 0; i < n; ++i) y[i] = value;
}

// `step` 0: repeats one element n times; else copies n elements.
void spread(int bytes, const char* from, std::int64_t step, char* to, std::int64_t n) {
  if (step != 0) {
    std::memcpy(to, from, static_cast<std::size_t>(n * bytes));
    return;
  }
  switch (bytes) {
    case 1: std::memset(to, *from, static_cast<std::size_t>(n)); return;
    case 2: return fill_with<std::uint16_t>(from, to, n);
    case 4: return fill_with<std::uint32_t>(from, to, n);
    default: return fill_with<std::uint64_t>(from, to, n);
  }
}

// Gathers rows that are too short to be worth a call.
template <class T>
void gather_short(const T* from, const std::int64_t* steps, const std::int64_t* dims, std::size_t rank, std::int64_t first, T* to,
                  std::int64_t n) {
  std::int64_t index[8] = {}, at = 0, rest = first;
  for (std::size_t i = rank; i-- > 0; rest /= dims[i]) {
    index[i] = rest % dims[i];
    at += index[i] * steps[i];
  }
  const std::size_t last = rank - 1;
  for (std::int64_t done = 0; done < n;) {
    const std::int64_t some = std::min(n - done, dims[last] - index[last]);
    for (std::int64_t i = 0; i < some; ++i) to[done + i] = from[at + i * steps[last]];
    done += some;
    at -= index[last] * steps[last];
    index[last] = 0;
    for (std::size_t i = last; i-- > 0;) {
      at += steps[i];
      if (++index[i] < dims[i]) break;
      at -= steps[i] * dims[i];
      index[i] = 0;
    }
  }
}

}  // namespace

bool can_fold(std::span<const ChainStep> steps, std::int64_t count, std::int64_t row) {
  if (row < 2) return false;
  if (row > kMostRow) return row == count || row % kVector == 0 || !any_minds_vectors(steps);
  return rows_at_once(steps, row) * row <= 2 * kMostRow;
}

ChainPlan::ChainPlan(const Chain& chain, std::span<const Shape> inputs, const Shape& out) : chain_(chain) {
  count_ = element_count(out);
  for (const Shape& s : inputs) {
    Input in;
    const std::int64_t size = element_count(s);
    if (size == count_) {
      in.form = Form::full;
    } else if (size == 1) {
      in.form = Form::single;
    } else if (count_ != 0) {
      // Merged dimensions: neighbours through which the input steps evenly.
      std::int64_t run = 1;
      std::vector<std::int64_t> dims, steps;
      for (std::size_t i = out.size(); i-- > 0;) {
        const std::size_t pad = out.size() - s.size();
        const std::int64_t extent = i < pad ? 1 : s[i - pad];
        if (out[i] == 1) continue;
        const std::int64_t step = extent == 1 ? 0 : run;
        run *= extent;
        if (!dims.empty() && step == steps.front() * dims.front()) {
          dims.front() *= out[i];
        } else {
          dims.insert(dims.begin(), out[i]);
          steps.insert(steps.begin(), step);
        }
      }
      const bool periodic = dims.size() == 2 && steps[0] == 0;
      in.form = periodic ? Form::periodic : Form::general;
      in.period = periodic ? dims[1] : 0;
      in.dims = std::move(dims);
      in.steps = std::move(steps);
    }
    inputs_.push_back(std::move(in));
  }
  settle_rooms();
  settle_tile();
}

// A result that is no output keeps a room until its last reader has run.
void ChainPlan::settle_rooms() {
  const std::size_t inputs = inputs_.size(), steps = chain_.steps.size();
  std::vector<std::uint32_t> last(steps, 0);
  last_read_.assign(inputs, 0);
  for (std::uint32_t i = 0; i < steps; ++i) {
    const ChainStep& s = chain_.steps[i];
    for (int k = 0; k < s.operands; ++k) {
      const auto at = static_cast<std::size_t>(s.operand[k]);
      (at < inputs ? last_read_[at] : last[at - inputs]) = i;
    }
  }
  output_of_step_.assign(steps, -1);
  room_of_step_.assign(steps, -1);
  for (std::size_t k = 0; k < chain_.outputs.size(); ++k) output_of_step_[chain_.outputs[k]] = static_cast<std::int32_t>(k);
  for (const Chain::Fold& f : chain_.folds) last[f.step] = static_cast<std::uint32_t>(steps);  // read after all steps
  std::vector<std::int32_t> free;
  for (std::uint32_t i = 0; i < steps; ++i) {
    const ChainStep& s = chain_.steps[i];
    if (output_of_step_[i] < 0) {
      if (free.empty()) free.push_back(rooms_++);
      room_of_step_[i] = free.back();
      free.pop_back();
    }
    for (int k = 0; k < s.operands; ++k) {
      const std::int64_t from = s.operand[k] - static_cast<std::int64_t>(inputs);
      bool again = false;
      for (int j = 0; j < k; ++j) again = again || s.operand[j] == s.operand[k];
      if (from < 0 || again) continue;
      const auto f = static_cast<std::size_t>(from);
      if (last[f] == i && room_of_step_[f] >= 0) free.push_back(room_of_step_[f]);
    }
  }
}

void ChainPlan::settle_tile() {
  std::int64_t widest = 1, weight = 0;
  for (const ChainStep& s : chain_.steps) {
    widest = std::max<std::int64_t>(widest, s.bytes);
    weight += is_costly(s) ? 4 : 1;
  }
  for (const std::uint8_t b : chain_.input_bytes) widest = std::max<std::int64_t>(widest, b);
  tile_ = std::clamp(kTileBytes / (widest * std::max(1, rooms_)), kLeastTile, kMostTile) / kVector * kVector;
  if (!chain_.folds.empty()) {
    const std::int64_t row = chain_.row, some = std::max<std::int64_t>(1, rows_at_once(chain_.steps, row) * row);
    parts_ = row > kMostRow ? (row + kReducePart - 1) / kReducePart : 0;
    tile_ = parts_ != 0 ? kReducePart : std::max<std::int64_t>(1, tile_ / some) * some;
  }
  grain_ = std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, weight) / tile_);
  room_bytes_ = static_cast<std::size_t>(tile_ * widest);
  // The rooms of steps, of outputs that share an input's memory, and of operands that are written out.
  scratch_bytes_ = room_bytes_ * (static_cast<std::size_t>(rooms_) + chain_.outputs.size() + 3);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    Input& in = inputs_[i];
    if (in.form != Form::periodic && in.form != Form::general) continue;
    if (in.form == Form::periodic && in.period > kMostPeriod) in.form = Form::general;
    in.room = static_cast<std::uint32_t>(scratch_bytes_);
    const std::int64_t elements = in.form == Form::periodic ? tile_ + in.period : tile_;
    scratch_bytes_ += static_cast<std::size_t>((elements * chain_.input_bytes[i] + 63) / 64 * 64);
  }
}

// The state of one thread while it computes a range of tiles.
class ChainPlan::Worker {
 public:
  Worker(const ChainPlan& plan, const void* const* inputs, void* const* outputs)
      : p_(plan), c_(plan.chain_), inputs_(inputs), outputs_(outputs) {
    // Slot 3 of the scratch is the caller's own: see scratch.h.
    scratch_ = reinterpret_cast<char*>(thread_scratch(3, (p_.scratch_bytes_ + 3) / 4));
    for (std::size_t i = 0; i < p_.inputs_.size(); ++i) {
      const Input& in = p_.inputs_[i];
      if (in.form != Form::periodic) continue;
      const std::int64_t bytes = c_.input_bytes[i], all = p_.tile_ + in.period;
      const auto* from = static_cast<const char*>(inputs[i]);
      for (std::int64_t at = 0; at < all; at += in.period) {
        spread(static_cast<int>(bytes), from, 1, scratch_ + in.room + at * bytes, std::min(in.period, all - at));
      }
    }
    for (std::size_t k = 0; k < c_.outputs.size(); ++k) {
      aside_[k] = false;
      for (std::size_t i = 0; i < p_.inputs_.size(); ++i) {
        aside_[k] = aside_[k] || (inputs[i] == outputs[k] && p_.last_read_[i] > c_.outputs[k]);
      }
    }
  }

  // Tile number `number`; `parts`: receives the folds of parts of rows.
  void tile(std::int64_t number, float* parts) {
    std::int64_t first = number * p_.tile_, n = std::min(p_.tile_, p_.count_ - first);
    if (p_.parts_ != 0) {
      const std::int64_t at = number % p_.parts_ * p_.tile_;
      first = number / p_.parts_ * c_.row + at;
      n = std::min(p_.tile_, c_.row - at);
    }
    compute(first, n);
    for (std::size_t f = 0; f < c_.folds.size(); ++f) {
      const auto* x = reinterpret_cast<const float*>(operands_[p_.inputs_.size() + c_.folds[f].step].data);
      if (p_.parts_ != 0) {
        parts[static_cast<std::int64_t>(f) * p_.tiles() + number] = reduce_part_f32(c_.folds[f].op, x, n);
        continue;
      }
      auto* y = static_cast<float*>(outputs_[c_.outputs.size() + f]) + first / c_.row;
      if (reduce_.side_by_side(c_.folds[f].op, c_.row)) {
        reduce_.short_rows(c_.folds[f].op, x, y, n / c_.row, c_.row);
        continue;
      }
      for (std::int64_t r = 0; r < n / c_.row; ++r) y[r] = reduce_.row(c_.folds[f].op, x + r * c_.row, c_.row);
    }
  }

 private:
  void compute(std::int64_t first, std::int64_t n) {
    const std::size_t inputs = p_.inputs_.size();
    for (std::size_t i = 0; i < inputs; ++i) operands_[i] = input(i, first, n);
    for (std::size_t i = 0; i < c_.steps.size(); ++i) {
      const ChainStep& s = c_.steps[i];
      const std::int32_t out = p_.output_of_step_[i];
      char* y = nullptr;
      if (out < 0) {
        y = room(p_.room_of_step_[i]);
      } else if (aside_[out]) {
        y = room(p_.rooms_ + out);
      } else {
        y = static_cast<char*>(outputs_[out]) + first * s.bytes;
      }
      step(s, y, n);
      operands_[inputs + i] = {y, 1};
    }
    for (std::size_t k = 0; k < c_.outputs.size(); ++k) {
      if (!aside_[k]) continue;
      const std::int64_t bytes = c_.steps[c_.outputs[k]].bytes;
      std::memcpy(static_cast<char*>(outputs_[k]) + first * bytes, room(p_.rooms_ + static_cast<std::int32_t>(k)),
                  static_cast<std::size_t>(n * bytes));
    }
  }

  char* room(std::int32_t number) const { return scratch_ + static_cast<std::size_t>(number) * p_.room_bytes_; }

  Operand input(std::size_t i, std::int64_t first, std::int64_t n) const {
    const Input& in = p_.inputs_[i];
    const std::int64_t bytes = c_.input_bytes[i];
    const auto* from = static_cast<const char*>(inputs_[i]);
    if (in.form == Form::full) return {from + first * bytes, 1};
    if (in.form == Form::single) return {from, 0};
    char* to = scratch_ + in.room;
    if (in.form == Form::periodic) return {to + first % in.period * bytes, 1};
    const std::int64_t inner = in.dims.back(), step = in.steps.back();
    if (first % inner + n <= inner) {  // within one row
      std::int64_t at = first % inner * step, rest = first / inner;
      for (std::size_t d = in.dims.size() - 1; d-- > 0; rest /= in.dims[d]) at += rest % in.dims[d] * in.steps[d];
      return {from + at * bytes, step};
    }
    const auto gather = [&](auto zero) {
      using T = decltype(zero);
      gather_short(reinterpret_cast<const T*>(from), in.steps.data(), in.dims.data(), in.dims.size(), first,
                   reinterpret_cast<T*>(to), n);
    };
    if (bytes == 1) gather(std::uint8_t{});
    if (bytes == 2) gather(std::uint16_t{});
    if (bytes == 4) gather(std::uint32_t{});
    if (bytes == 8) gather(std::uint64_t{});
    return {to, 1};
  }

  int bytes_of(std::int32_t operand) const {
    const auto at = static_cast<std::size_t>(operand);
    return at < c_.input_bytes.size() ? c_.input_bytes[at] : c_.steps[at - c_.input_bytes.size()].bytes;
  }

  // Operand k of the step, element by element.
  const char* dense(const ChainStep& s, int k, std::int64_t n) const {
    const Operand& x = operands_[s.operand[k]];
    if (x.step != 0) return x.data;
    char* to = room(p_.rooms_ + static_cast<std::int32_t>(c_.outputs.size()) + k);
    spread(bytes_of(s.operand[k]), x.data, 0, to, n);
    return to;
  }

  void step(const ChainStep& s, char* y, std::int64_t n) const {
    using Kind = ChainStep::Kind;
    const Operand& a = operands_[s.operand[0]];
    const Operand& b = operands_[s.operand[1]];
    auto* const to = reinterpret_cast<float*>(y);
    const auto floats = [](const char* x) { return reinterpret_cast<const float*>(x); };
    switch (s.kind) {
      case Kind::unary: return elementwise_.unary(s.spec, floats(dense(s, 0, n)), to, n);
      case Kind::math: return math_.unary(s.math, floats(dense(s, 0, n)), to, n, 1, n);
      case Kind::binary:
        if (a.step != 0 && b.step == 0) return elementwise_.scalar_right(s.binary, floats(a.data), *floats(b.data), to, n);
        if (a.step == 0 && b.step != 0) return elementwise_.scalar_left(s.binary, *floats(a.data), floats(b.data), to, n);
        return elementwise_.binary(s.binary, floats(dense(s, 0, n)), floats(dense(s, 1, n)), to, n);
      case Kind::remainder: return math_.remainder(s.remainder, floats(a.data), a.step, floats(b.data), b.step, to, n);
      case Kind::pair: return plain_binary_row(s.pair, s.elem)(a.data, a.step, b.data, b.step, y, n);
      case Kind::map: return plain_unary_row(s.map, s.elem)(dense(s, 0, n), y, n);
      case Kind::select: {
        const Operand& z = operands_[s.operand[2]];
        return select_row(s.bytes)(reinterpret_cast<const std::uint8_t*>(a.data), a.step, b.data, b.step, z.data, z.step, y, n);
      }
      case Kind::cast: return cast(s, dense(s, 0, n), y, n);
    }
  }

  void cast(const ChainStep& s, const char* x, char* y, std::int64_t n) const {
    const auto* floats = reinterpret_cast<const float*>(x);
    auto* const to = reinterpret_cast<float*>(y);
    if (s.from == DataType::float16) return convert_.half_to_f32(x, to, n);
    if (s.from == DataType::bfloat16) return convert_.bfloat_to_f32(x, to, n);
    if (s.to == DataType::float16) return convert_.f32_to_half(floats, y, n);
    if (s.to == DataType::bfloat16) return convert_.f32_to_bfloat(floats, y, n);
    cast_row(s.from, s.to)(x, y, n);
  }

  const ChainPlan& p_;
  const Chain& c_;
  const void* const* inputs_;
  void* const* outputs_;
  char* scratch_ = nullptr;
  bool aside_[Chain::kMostOutputs] = {};
  Operand operands_[Chain::kMostInputs + Chain::kMostSteps];
  const ElementwiseKernels& elementwise_ = elementwise_kernels();
  const MathKernels& math_ = math_kernels();
  const ConvertKernels& convert_ = convert_kernels();
  const ReduceKernels& reduce_ = reduce_kernels();
};

std::int64_t ChainPlan::tiles() const { return parts_ != 0 ? count_ / chain_.row * parts_ : (count_ + tile_ - 1) / tile_; }

void ChainPlan::run(const void* const* inputs, void* const* outputs) const {
  const std::size_t folds = parts_ != 0 ? chain_.folds.size() : 0;
  float* const parts = folds != 0 ? thread_scratch(4, folds * static_cast<std::size_t>(tiles())) : nullptr;
  parallel_for(tiles(), grain_, [&](std::int64_t begin, std::int64_t end) {
    Worker worker(*this, inputs, outputs);
    for (std::int64_t t = begin; t < end; ++t) worker.tile(t, parts);
  });
  for (std::size_t f = 0; f < folds; ++f) {
    auto* y = static_cast<float*>(outputs[chain_.outputs.size() + f]);
    const float* of_fold = parts + static_cast<std::int64_t>(f) * tiles();
    for (std::int64_t r = 0; r < count_ / chain_.row; ++r) {
      y[r] = join_parts_f32(chain_.folds[f].op, of_fold + r * parts_, parts_, chain_.row);
    }
  }
}

}  // namespace sdx::cpu
