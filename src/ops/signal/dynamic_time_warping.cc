// com.microsoft DynamicTimeWarping 1: the cheapest path through a matrix of costs, from one corner to the other (Whisper's
// timestamps).

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "ops/context.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

void infer_dtw(InferContext& c) {
  const SymShape* in = c.shape(0);
  if (in != nullptr && in->size() != 2 && in->size() != 3) c.fail("expected costs [M,N] or [1,M,N], received {}", to_string(*in));
  c.output(0, DataType::int32, SymShape{Dim(2), Dim()});
}

enum Step : std::uint8_t { diagonal, down, right };

void run_dtw(OpContext& c) {
  const Tensor& in = c.input(0);
  if ((in.rank() != 2 && in.rank() != 3) || (in.rank() == 3 && in.dim(0) != 1) || in.size() == 0) {
    c.fail("expected costs [M,N] or [1,M,N] that are not empty, received {}", in.type_string());
  }
  const auto costs = in.values<float>();
  const std::int64_t rows = in.dim(in.rank() - 2), columns = in.dim(in.rank() - 1);
  if (rows > INT32_MAX || columns > INT32_MAX) c.fail("{} is too large", in.type_string());
  constexpr float kFar = std::numeric_limits<float>::infinity();
  // Sums of the row above and of this one; column 0 stands for "outside".
  std::vector<float> above(static_cast<std::size_t>(columns) + 1, kFar), here(above.size());
  std::vector<Step> steps(costs.size());
  above[0] = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    c.stop().check();
    here[0] = kFar;
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto k = static_cast<std::size_t>(j);
      const float a = above[k], b = above[k + 1], l = here[k];
      const Step step = a < b && a < l ? diagonal : b < a && b < l ? down : right;
      const auto at = static_cast<std::size_t>(i * columns + j);
      steps[at] = step;
      here[k + 1] = costs[at] + (step == diagonal ? a : step == down ? b : l);
    }
    above.swap(here);
  }
  std::vector<std::pair<std::int32_t, std::int32_t>> path;
  for (std::int64_t i = rows - 1, j = columns - 1; i >= 0 && j >= 0;) {
    path.emplace_back(static_cast<std::int32_t>(i), static_cast<std::int32_t>(j));
    // Along the first row and column there is only one way, even if the sums are infinite or NaN.
    const Step step = i == 0 ? right : j == 0 ? down : steps[static_cast<std::size_t>(i * columns + j)];
    if (step != right) --i;
    if (step != down) --j;
  }
  std::reverse(path.begin(), path.end());
  const auto length = static_cast<std::int64_t>(path.size());
  const auto out = c.output(0, DataType::int32, {2, length}).mutable_values<std::int32_t>();
  for (std::size_t k = 0; k < path.size(); ++k) {
    out[k] = path[k].first;
    out[path.size() + k] = path[k].second;
  }
}

}  // namespace

void register_dynamic_time_warping(OpTable& t) {
  t.add(OpDef("com.microsoft", "DynamicTimeWarping", 1)
            .in("input", "F", bit(DataType::float32))
            .out("output", "I", bit(DataType::int32))
            .infer_with(infer_dtw)
            .run_with(run_dtw));
}

}  // namespace sdx::ops
