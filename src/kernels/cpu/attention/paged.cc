// Texts with few new tokens are read row by row, straight from their blocks; those with many go through the panels of
// attention_panels.cc, which gather rows as they pack them.

#include "kernels/cpu/attention/paged.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/attention/attention_panels.h"
#include "kernels/cpu/attention/attention_simd.h"
#include "kernels/cpu/attention/attention_tiles_simd.h"
#include "kernels/cpu/elementwise/convert_simd.h"
#include "kernels/cpu/elementwise/elementwise_simd.h"
#include "kernels/cpu/gemm/gemm_simd.h"
#include "kernels/cpu/simd/cuts.h"
#include "kernels/cpu/simd/scratch.h"

namespace sdx::cpu {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr std::int64_t kTile = 128;    // positions between two steps of the online softmax
constexpr std::int64_t kAhead = 8192;  // bytes, in whole runs: fewer arrive too late, more overflow the first-level cache
constexpr std::int64_t kPart = 512;    // the most positions that one task reads

struct Kernels {
  const AttentionKernels& rows;
  const AttentionTileKernels& tiles;
  const ElementwiseKernels& elementwise;
  const ConvertKernels& convert;
};

Kernels all_kernels() { return {attention_kernels(), attention_tile_kernels(), elementwise_kernels(), convert_kernels()}; }

// The queries of `tokens` tokens of a text, from token `first` on, in the heads that share a key head; and the positions that any
// of them sees, or a part of these.
struct Task {
  std::int64_t text = 0, kv = 0, first = 0, tokens = 0, begin = 0, end = 0;
  std::int64_t partial = -1;  // offset of its partial result in the scratch; -1: the result is complete
  bool panels = false;
};

std::int64_t length(const PagedArgs& a, std::int64_t text) { return a.starts[text + 1] - a.starts[text]; }

// Positions that token number `token` of a text sees.
VisibleKeys seen_by(const PagedArgs& a, std::int64_t text, std::int64_t token) {
  const std::int64_t end = a.past[text] + token + 1;
  return {a.window > 0 ? std::max<std::int64_t>(0, end - a.window) : 0, end};
}

std::int64_t row_bytes(const PagedRows& rows, std::int64_t size) {
  return size * (rows.type == DataType::float32 ? 4 : rows.type == DataType::int8 ? 1 : 2);
}

const char* row_at(const PagedRows& rows, std::int64_t row, std::int64_t size) {
  return static_cast<const char*>(rows.data) + row * row_bytes(rows, size);
}

std::int64_t row_of(const PagedArgs& a, std::int64_t text, std::int64_t kv, std::int64_t position) {
  const std::int64_t block = a.table[text * a.table_width + position / a.block_size];
  return (block * a.kv_heads + kv) * a.block_size + position % a.block_size;
}

// Calls fn(position, row, n) for each run of positions in [begin, end) whose rows of head `kv` are contiguous.
template <class F>
void for_each_run(const PagedArgs& a, std::int64_t text, std::int64_t kv, std::int64_t begin, std::int64_t end, const F& fn) {
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t n = std::min(a.block_size - at % a.block_size, end - at);
    fn(at, row_of(a, text, kv, at), n);
    at += n;
  }
}

const RowProducts& products(const Kernels& k, DataType type) {
  switch (type) {
    case DataType::float16: return k.tiles.halves;
    case DataType::bfloat16: return k.tiles.bfloats;
    case DataType::int8: return k.tiles.bytes;
    default: return k.tiles.floats;
  }
}

// One task row by row.
class RowsTask {
 public:
  // `next`: the thread's next task, or null.
  RowsTask(const Kernels& kernels, const PagedArgs& args, const Task& task, const Task* next)
      : k_(kernels), a_(args), t_(task), next_(next), group_(args.heads / args.kv_heads), queries_(task.tokens * group_) {
    const std::int64_t size = a_.head_size;
    ahead_ = std::clamp<std::int64_t>(kAhead / (a_.block_size * row_bytes(a_.keys, size)), 1, 8);
    scores_ = thread_scratch(2, to_size(queries_ * (kTile + 2 * size + 2)));
    sums_ = scores_ + queries_ * kTile;
    max_ = sums_ + queries_ * size;
    total_ = max_ + queries_;
    packed_ = total_ + queries_;
  }

  void run(float* partials) {
    const bool whole = t_.partial < 0;
    for (std::int64_t i = 0; i < queries_; ++i) {
      max_[i] = whole && a_.sink != nullptr ? a_.sink[head_of(i)] : kNever;
      total_[i] = whole && a_.sink != nullptr ? 1.0F : 0.0F;
    }
    std::fill_n(sums_, queries_ * a_.head_size, 0.0F);
    take_queries();
    for (std::int64_t at = t_.begin; at < t_.end; at += kTile) tile(at, std::min(at + kTile, t_.end));
    if (whole) return store();
    float* to = partials + t_.partial;
    to = std::copy_n(sums_, queries_ * a_.head_size, to);
    to = std::copy_n(max_, queries_, to);
    std::copy_n(total_, queries_, to);
  }

 private:
  std::int64_t head_of(std::int64_t query) const { return t_.kv * group_ + query % group_; }
  std::int64_t token_of(std::int64_t query) const { return t_.first + query / group_; }

  void take_queries() {
    const float* from = a_.q + (a_.starts[t_.text] + t_.first) * a_.q_row + t_.kv * group_ * a_.head_size;
    q_ = t_.tokens == 1 ? from : packed_;
    if (t_.tokens == 1) return;
    const std::int64_t width = group_ * a_.head_size;
    for (std::int64_t i = 0; i < t_.tokens; ++i) std::copy_n(from + i * a_.q_row, width, packed_ + i * width);
  }

  void tile(std::int64_t begin, std::int64_t end) {
    const std::int64_t size = a_.head_size, n = end - begin;
    const RowProducts &keys = products(k_, a_.keys.type), &values = products(k_, a_.values.type);
    for_each_run(a_, t_.text, t_.kv, begin, end, [&](std::int64_t at, std::int64_t row, std::int64_t count) {
      float* to = scores_ + at - begin;
      const char* next = ahead({false, at});
      keys.dots(q_, size, queries_, row_at(a_.keys, row, size), size, count, size, to, kTile, next);
      for (std::int64_t i = 0; a_.keys.scales != nullptr && i < queries_; ++i)
        k_.elementwise.binary(Binary::mul, to + i * kTile, a_.keys.scales + row, to + i * kTile, count);
    });
    for (std::int64_t i = 0; i < queries_; ++i) weigh(i, begin, n);
    for_each_run(a_, t_.text, t_.kv, begin, end, [&](std::int64_t at, std::int64_t row, std::int64_t count) {
      float* p = scores_ + at - begin;
      if (a_.values.scales != nullptr) scale_weights(p, at, row, count);
      const char* next = ahead({true, at});
      values.mix(p, kTile, queries_, row_at(a_.values, row, size), size, count, size, sums_, size, next);
    });
  }

  // A run of rows, in the order in which they are read: a tile's keys, its values, the next tile's keys.
  struct Run {
    bool values;
    std::int64_t at;
  };
  Run after(const Task& t, Run r) const {
    const std::int64_t tile = t.begin + (r.at - t.begin) / kTile * kTile, end = std::min(tile + kTile, t.end);
    const std::int64_t next = r.at + a_.block_size - r.at % a_.block_size;
    if (next < end) return {r.values, next};
    return r.values ? Run{false, end} : Run{true, tile};
  }
  // The rows to prefetch: those read some runs after this one. After the task's last run, those that the thread reads next.
  const char* ahead(Run r) const {
    const Task* t = &t_;
    for (std::int64_t i = 0; i < ahead_; ++i) {
      r = after(*t, r);
      if (r.at < t->end) continue;
      if (t == next_ || next_ == nullptr) return nullptr;
      t = next_, r = {false, t->begin};
    }
    return row_at(r.values ? a_.values : a_.keys, row_of(a_, t->text, t->kv, r.at), a_.head_size);
  }

  // Turns the scores of query i into weights; positions that it does not see get 0.
  void weigh(std::int64_t i, std::int64_t begin, std::int64_t n) {
    float* s = scores_ + i * kTile;
    if (a_.softcap > 0.0F) {
      k_.rows.scale(s, a_.scale / a_.softcap, s, n);
      k_.elementwise.unary({Unary::tanh}, s, s, n);
      k_.rows.scale(s, a_.softcap, s, n);
    } else {
      k_.rows.scale(s, a_.scale, s, n);
    }
    const auto [from, to] = seen(i, begin, n);
    std::fill(s, s + from, kNever);
    std::fill(s + to, s + n, kNever);
    const float factor = k_.rows.online_softmax(s, n, &max_[i], &total_[i]);
    float* sums = sums_ + i * a_.head_size;
    if (factor != 1.0F) k_.rows.scale(sums, factor, sums, a_.head_size);
  }

  // Only for visible positions: scales elsewhere may be NaN.
  void scale_weights(float* p, std::int64_t at, std::int64_t row, std::int64_t n) const {
    for (std::int64_t i = 0; i < queries_; ++i) {
      const auto [from, to] = seen(i, at, n);
      float* x = p + i * kTile + from;
      k_.elementwise.binary(Binary::mul, x, a_.values.scales + row + from, x, to - from);
    }
  }

  VisibleKeys seen(std::int64_t query, std::int64_t begin, std::int64_t n) const {
    const VisibleKeys v = seen_by(a_, t_.text, token_of(query));
    const std::int64_t from = std::clamp<std::int64_t>(v.first - begin, 0, n);
    return {from, std::clamp<std::int64_t>(v.last - begin, from, n)};
  }

  void store() const {
    for (std::int64_t i = 0; i < queries_; ++i) {
      float* to = a_.out + ((a_.starts[t_.text] + token_of(i)) * a_.heads + head_of(i)) * a_.head_size;
      k_.rows.scale(sums_ + i * a_.head_size, total_[i] == 0.0F ? 0.0F : 1.0F / total_[i], to, a_.head_size);
    }
  }

  const Kernels& k_;
  const PagedArgs& a_;
  const Task& t_;
  const Task* next_;
  std::int64_t group_, queries_, ahead_;
  const float* q_ = nullptr;  // [queries, size]
  float *scores_, *sums_, *max_, *total_, *packed_;
};

struct TextRows {
  const Kernels& k;
  const PagedArgs& a;
  std::int64_t text;
};

// As float32; float32 rows are used in place.
KeyRun widened_run(const TextRows& t, const PagedRows& rows, std::int64_t kv, std::int64_t first, std::int64_t most,
                   float* spare) {
  const std::int64_t size = t.a.head_size, row = row_of(t.a, t.text, kv, first);
  const std::int64_t n = std::min(most, t.a.block_size - first % t.a.block_size);
  const char* from = row_at(rows, row, size);
  // 16 KB ahead for heads of 64: blocks are scattered in memory, and the hardware prefetches each one too late.
  const std::int64_t later = first + 64;
  if (later < t.a.past[t.text] + length(t.a, t.text)) {
    const char* there = row_at(rows, row_of(t.a, t.text, kv, later), size);
    for (std::int64_t i = 0, end = n * row_bytes(rows, size); i < end; i += 64) __builtin_prefetch(there + i);
  }
  switch (rows.type) {
    case DataType::float16: t.k.convert.half_to_f32(from, spare, n * size); break;
    case DataType::bfloat16: t.k.convert.bfloat_to_f32(from, spare, n * size); break;
    case DataType::int8:
      for (std::int64_t i = 0; i < n; ++i) {
        t.k.tiles.widen_bytes(reinterpret_cast<const std::int8_t*>(from) + i * size, rows.scales[row + i], spare + i * size,
                              size);
      }
      break;
    default: return {reinterpret_cast<const float*>(from), size, n};
  }
  return {spare, size, n};
}

void run_panels(const Kernels& k, const PagedArgs& a, const Task& t) {
  const TextRows rows{k, a, t.text};
  AttentionArgs p;
  p.heads = a.heads, p.kv_heads = a.kv_heads, p.queries = length(a, t.text), p.keys = a.past[t.text] + p.queries;
  p.head_size = p.v_head_size = a.head_size;
  p.q = a.q + a.starts[t.text] * a.q_row, p.q_head = a.head_size, p.q_row = a.q_row;
  p.out = a.out + a.starts[t.text] * a.heads * a.head_size, p.out_head = a.head_size, p.out_row = a.heads * a.head_size;
  p.scale = a.scale, p.softcap = a.softcap, p.sink = a.sink;
  p.causal = true, p.causal_offset = a.past[t.text], p.window = a.window;
  p.source.self = &rows;
  p.source.run = [](const void* self, bool values, std::int64_t kv, std::int64_t first, std::int64_t most, float* spare) {
    const auto& text = *static_cast<const TextRows*>(self);
    return widened_run(text, values ? text.a.values : text.a.keys, kv, first, most, spare);
  };
  attend_panels(p, 0, t.kv, t.first, t.tokens, p.keys);
}

// An estimate in nanoseconds: a fast core reads 40 GB/s or computes 110 GFLOP/s, 190 with panels.
double cost_of(const PagedArgs& a, const Task& t) {
  const auto positions = static_cast<double>(t.end - t.begin);
  const std::int64_t rows = t.tokens * (a.heads / a.kv_heads);
  const double flops = 4.0 * positions * static_cast<double>(rows * a.head_size);
  if (t.panels) return flops / 190.0;
  return std::max(flops / 110.0, positions * static_cast<double>(2 * row_bytes(a.keys, a.head_size)) / 40.0);
}

// Tasks and their costs, and the size of the partial results of long texts.
struct Work {
  std::vector<Task> tasks;
  std::vector<double> cost;  // of all tasks up to and including this one
  std::int64_t partials = 0;

  void add(const PagedArgs& a, const Task& t) {
    tasks.push_back(t);
    cost.push_back((cost.empty() ? 0.0 : cost.back()) + cost_of(a, t));
  }
};

void add_few(const PagedArgs& a, std::int64_t text, Work& work) {
  const std::int64_t tokens = length(a, text);
  const std::int64_t begin = seen_by(a, text, 0).first, end = a.past[text] + tokens;
  const Cuts parts(end - begin, kPart);
  const std::int64_t queries = tokens * (a.heads / a.kv_heads);
  for (std::int64_t kv = 0; kv < a.kv_heads; ++kv) {
    for (std::int64_t i = 0; i < parts.parts; ++i) {
      Task t{text, kv, 0, tokens, begin + parts.begin(i), begin + parts.begin(i + 1)};
      if (parts.parts > 1) {
        t.partial = work.partials;
        work.partials += round_up(queries * (a.head_size + 2), 16);
      }
      work.add(a, t);
    }
  }
}

void add_many(const PagedArgs& a, std::int64_t text, std::int64_t most, Work& work) {
  const std::int64_t nr = gemm_kernels().nr;
  const Cuts blocks(up_div(length(a, text), nr), most / nr);  // in panels
  for (std::int64_t kv = 0; kv < a.kv_heads; ++kv) {
    for (std::int64_t i = 0; i < blocks.parts; ++i) {
      Task t{text, kv, blocks.begin(i) * nr};
      t.tokens = std::min(length(a, text) - t.first, blocks.size(i) * nr);
      t.begin = seen_by(a, text, t.first).first, t.end = seen_by(a, text, t.first + t.tokens - 1).last;
      t.panels = true;
      work.add(a, t);
    }
  }
}

Work work_of(const PagedArgs& a) {
  Work work;
  const std::int64_t few = few_queries();
  std::int64_t many = 0;
  for (std::int64_t s = 0; s < a.texts; ++s) many += length(a, s) > few ? length(a, s) : 0;
  // Keys are packed once per block of queries, so there are as few blocks as the threads allow.
  const std::int64_t nr = gemm_kernels().nr, threads = current_pool().threads();
  std::int64_t most = panel_queries(a.heads / a.kv_heads, a.head_size, a.head_size);
  if (threads > 1) most = std::min(most, std::max(2 * nr, up_div(many * a.kv_heads, 4 * threads)));
  most = round_up(most, nr);
  for (std::int64_t s = 0; s < a.texts; ++s) {
    if (length(a, s) > few) {
      add_many(a, s, most, work);
    } else if (length(a, s) > 0) {
      add_few(a, s, work);
    }
  }
  return work;
}

// Merges one query of tasks [first, last), the parts of one text and head.
void merge(const Kernels& k, const PagedArgs& a, const Work& work, std::int64_t first, std::int64_t last, std::int64_t query,
           const float* partials) {
  const Task& t = work.tasks[to_size(first)];
  const std::int64_t size = a.head_size, group = a.heads / a.kv_heads, queries = t.tokens * group;
  const std::int64_t head = t.kv * group + query % group;
  const auto part = [&](std::int64_t i) { return partials + work.tasks[to_size(i)].partial; };
  float most = a.sink != nullptr ? a.sink[head] : kNever;
  for (std::int64_t i = first; i < last; ++i) most = std::max(most, part(i)[queries * size + query]);
  float total = a.sink != nullptr && most > kNever ? std::exp(a.sink[head] - most) : 0.0F;
  float* out = a.out + ((a.starts[t.text] + t.first + query / group) * a.heads + head) * size;
  std::fill_n(out, size, 0.0F);
  for (std::int64_t i = first; i < last; ++i) {
    const float max = part(i)[queries * size + query];
    if (max == kNever) continue;  // it sees nothing of this part
    const float weight = std::exp(max - most);
    total += weight * part(i)[queries * size + queries + query];
    k.tiles.floats.mix(&weight, 1, 1, part(i) + query * size, size, 1, size, out, size, nullptr);
  }
  k.rows.scale(out, total == 0.0F ? 0.0F : 1.0F / total, out, size);
}

void merge_all(const Kernels& k, const PagedArgs& a, const Work& work, const float* partials) {
  const auto count = static_cast<std::int64_t>(work.tasks.size());
  for (std::int64_t first = 0; first < count;) {
    const Task& t = work.tasks[to_size(first)];
    std::int64_t last = first + 1;
    while (last < count && work.tasks[to_size(last)].text == t.text && work.tasks[to_size(last)].kv == t.kv) ++last;
    if (t.partial >= 0) {
      const std::int64_t queries = t.tokens * (a.heads / a.kv_heads);
      parallel_for(queries, std::max<std::int64_t>(1, 65536 / ((last - first) * a.head_size)),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i) merge(k, a, work, first, last, i, partials);
                   });
    }
    first = last;
  }
}

}  // namespace

void write_paged_row(const PagedRows& rows, std::int64_t row, const float* x, std::int64_t head_size) {
  char* to = static_cast<char*>(rows.data) + row * row_bytes(rows, head_size);
  switch (rows.type) {
    case DataType::float16: return convert_kernels().f32_to_half(x, to, head_size);
    case DataType::bfloat16: return convert_kernels().f32_to_bfloat(x, to, head_size);
    case DataType::int8:
      rows.scales[row] = attention_tile_kernels().quantize(x, reinterpret_cast<std::int8_t*>(to), head_size);
      return;
    default: std::memcpy(to, x, to_size(head_size) * sizeof(float));
  }
}

void paged_attention_f32(const PagedArgs& a) {
  const Kernels k = all_kernels();
  const Work work = work_of(a);
  if (work.tasks.empty()) return;
  float* partials = work.partials > 0 ? thread_scratch(4, to_size(work.partials)) : nullptr;
  // Shares of equal cost, at least 2 microseconds each.
  const double all = work.cost.back();
  const auto count = static_cast<std::int64_t>(work.tasks.size());
  const std::int64_t shares = std::clamp<std::int64_t>(static_cast<std::int64_t>(all / 2000.0), 1,
                                                       std::min<std::int64_t>(count, 4 * current_pool().threads()));
  const auto boundary = [&](std::int64_t share) {
    if (share >= shares) return count;
    const double at = all * static_cast<double>(share) / static_cast<double>(shares);
    return static_cast<std::int64_t>(std::lower_bound(work.cost.begin(), work.cost.end(), at) - work.cost.begin());
  };
  parallel_for(shares, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = boundary(begin), last = boundary(end); i < last; ++i) {
      const Task& t = work.tasks[to_size(i)];
      if (t.panels) {
        run_panels(k, a, t);
      } else {
        const Task* next = i + 1 < last ? &work.tasks[to_size(i + 1)] : nullptr;
        RowsTask(k, a, t, next).run(partials);
      }
    }
  });
  if (partials != nullptr) merge_all(k, a, work, partials);
}

}  // namespace sdx::cpu
