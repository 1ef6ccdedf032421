// NonMaxSuppression: ai.onnx 10, 11.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>

#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "ops/tensor/movement.h"

namespace sdx::ops {
namespace {

struct NonMaxSuppressionAttrs {
  bool center_point_box = false;

  void fields(auto& f) { f("center_point_box", center_point_box); }
};

struct Box {
  float y1, x1, y2, x2;
  float area() const { return (y2 - y1) * (x2 - x1); }
};

// Corners in order. Source: ONNX NonMaxSuppression-11: any diagonal pair, or centre and size (x, y, width, height).
Box box_at(const float* p, bool centered) {
  if (centered) return {p[1] - p[3] / 2, p[0] - p[2] / 2, p[1] + p[3] / 2, p[0] + p[2] / 2};
  return {std::min(p[0], p[2]), std::min(p[1], p[3]), std::max(p[0], p[2]), std::max(p[1], p[3])};
}

// The boxes selected so far, coordinate by coordinate: blocks of them are compared at once.
class Selection {
 public:
  bool overlaps(const Box& a, float threshold) const {
    const float area = a.area();
    for (std::size_t at = 0; at < size_; at += kBlock) {
      const Block& b = blocks_[at / kBlock];
      std::array<float, kBlock> height, width;
      std::array<int, kBlock> meets;
      for (std::size_t i = 0; i < kBlock; ++i) {
        height[i] = std::min(a.y2, b.y2[i]) - std::max(a.y1, b.y1[i]);
        width[i] = std::min(a.x2, b.x2[i]) - std::max(a.x1, b.x1[i]);
        meets[i] = static_cast<int>(height[i] > 0) & static_cast<int>(width[i] > 0);
      }
      // Most boxes share nothing: few blocks need divisions.
      if (std::accumulate(meets.begin(), meets.end(), 0) == 0) continue;
      for (std::size_t i = 0; i < kBlock; ++i) {
        const float common = height[i] * width[i];
        const float all = area + b.area[i] - common;
        if (meets[i] != 0 && all > 0 && common / all > threshold) return true;
      }
    }
    return false;
  }
  void add(const Box& box) {
    const std::size_t i = size_ % kBlock;
    if (i == 0) blocks_.emplace_back();
    Block& b = blocks_.back();
    b.y1[i] = box.y1, b.x1[i] = box.x1, b.y2[i] = box.y2, b.x2[i] = box.x2, b.area[i] = box.area();
    ++size_;
  }
  void clear() {
    blocks_.clear();
    size_ = 0;
  }

 private:
  static constexpr std::size_t kBlock = 8;
  struct Block {  // what is not filled yet is an empty box, which overlaps nothing
    std::array<float, kBlock> y1{}, x1{}, y2{}, x2{}, area{};
    Block() {
      y1.fill(1);
      x1.fill(1);
    }
  };
  std::vector<Block> blocks_;
  std::size_t size_ = 0;
};

struct Limits {
  std::int64_t most = 0;
  float iou = 0;
  bool has_score = false;
  float score = 0;
};

// Boxes with a larger rank come first: higher scores, and of equal ones the box named first; NaN last.
std::uint64_t rank_of(float score, std::size_t box) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);  // -0 equals 0
  const std::uint32_t order = score != score ? 0 : ((bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U);
  return std::uint64_t{order} << 32 | (0xFFFFFFFFU - static_cast<std::uint32_t>(box));
}

// Gives the candidates in order without sorting those that are never needed: the upper 12 bits of their ranks select a few
// hundred of the best, which a heap returns one after the other; then the next few hundred follow.
class Candidates {
 public:
  void begin(const float* scores, std::size_t n, const Limits& limits) {
    ranks_.resize(n);
    counts_.assign(std::size_t{1} << kBits, 0);
    std::size_t size = 0;
    for (std::size_t i = 0; i < n; ++i) {
      ranks_[size] = rank_of(scores[i], i);
      const bool wanted = !limits.has_score || scores[i] > limits.score;
      counts_[ranks_[size] >> kShift] += wanted ? 1 : 0;
      size += wanted ? 1 : 0;
    }
    ranks_.resize(size);
    bin_ = counts_.size();
    some_ = 256;
    heap_.clear();
  }
  // False: there is none left.
  bool next(std::size_t& box) {
    if (heap_.empty() && !refill()) return false;
    box = 0xFFFFFFFFU - static_cast<std::uint32_t>(heap_.front());
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    return true;
  }

 private:
  static constexpr int kBits = 12, kShift = 64 - kBits;

  bool refill() {
    const std::size_t end = bin_;
    std::size_t size = 0;
    while (bin_ > 0 && size < some_) size += counts_[--bin_];
    if (size == 0) return false;
    some_ *= 4;  // each time all are looked through
    heap_.reserve(size);
    for (const std::uint64_t rank : ranks_) {
      const std::uint64_t bin = rank >> kShift;
      if (bin >= bin_ && bin < end) heap_.push_back(rank);
    }
    std::make_heap(heap_.begin(), heap_.end());
    return true;
  }

  std::vector<std::uint64_t> ranks_, heap_;
  std::vector<std::uint32_t> counts_;
  std::size_t bin_ = 0;  // all from this one on are or were in the heap
  std::size_t some_ = 256;
};

void select(const OpContext& c, const std::vector<Box>& boxes, const float* scores, const Limits& limits, Candidates& candidates,
            Selection& kept, Ints& selected) {
  candidates.begin(scores, boxes.size(), limits);
  kept.clear();
  selected.clear();
  std::size_t i = 0;
  while (static_cast<std::int64_t>(selected.size()) < limits.most && candidates.next(i)) {
    c.stop().check();
    if (kept.overlaps(boxes[i], limits.iou)) continue;
    kept.add(boxes[i]);
    selected.push_back(static_cast<std::int64_t>(i));
  }
}

template <class T>
T scalar(const OpContext& c, std::size_t i, T otherwise) {
  const Tensor* t = c.optional_input(i);
  if (t == nullptr) return otherwise;
  if (t->size() != 1) c.fail("input {} must be one number, received {}", i, t->type_string());
  return t->values<T>()[0];
}

void infer_nms(InferContext& c) { c.output(0, DataType::int64, SymShape{Dim(), Dim(3)}); }

void run_nms(OpContext& c) {
  const Tensor& boxes = c.input(0);
  const Tensor& scores = c.input(1);
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes.dim(2) != 4 || boxes.dim(0) != scores.dim(0) ||
      boxes.dim(1) != scores.dim(2)) {
    c.fail("expected boxes [batch, n, 4] and scores [batch, classes, n], received {} and {}", boxes.type_string(),
           scores.type_string());
  }
  const Limits limits{scalar<std::int64_t>(c, 2, 0), scalar<float>(c, 3, 0.0F), c.has_input(4), scalar<float>(c, 4, 0.0F)};
  const bool centered = parse<NonMaxSuppressionAttrs>(c).center_point_box;
  const std::int64_t n = boxes.dim(1);
  if (n > UINT32_MAX) c.fail("{} boxes: at most 2^32 - 1", n);
  std::vector<std::array<std::int64_t, 3>> rows;
  Candidates candidates;
  Selection kept;
  Ints selected;
  for (std::int64_t b = 0; b < boxes.dim(0) && scores.size() > 0 && limits.most > 0; ++b) {
    std::vector<Box> corners;
    corners.reserve(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) corners.push_back(box_at(c.data<float>(0) + (b * n + i) * 4, centered));
    for (std::int64_t k = 0; k < scores.dim(1); ++k) {
      select(c, corners, c.data<float>(1) + (b * scores.dim(1) + k) * n, limits, candidates, kept, selected);
      for (const std::int64_t s : selected) rows.push_back({b, k, s});
    }
  }
  Tensor& out = c.output(0, DataType::int64, {static_cast<std::int64_t>(rows.size()), 3});
  auto* to = static_cast<std::int64_t*>(out.mutable_data());
  for (const auto& row : rows) to = std::copy(row.begin(), row.end(), to);
}

}  // namespace

void register_non_max_suppression(OpTable& t) {
  t.add(OpDef("NonMaxSuppression", 10)
            .in("boxes scores", "", bit(DataType::float32))
            .in("max_output_boxes_per_class", "", types::int64, Arity::optional)
            .in("iou_threshold score_threshold", "", bit(DataType::float32), Arity::optional)
            .out("selected_indices", "", types::int64)
            .attrs<NonMaxSuppressionAttrs>()
            .infer_with(infer_nms)
            .run_with(run_nms));
}

}  // namespace sdx::ops
