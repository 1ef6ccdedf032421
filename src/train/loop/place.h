#pragma once
// The position of training in its data: a checkpoint keeps it besides parameters and moments, so that training can continue as if
// it had never stopped.

#include <limits>
#include <string>
#include <string_view>

#include <sdx/train/fit.hpp>

namespace sdx::train::loop {

// The property of a checkpoint that holds a Place as JSON.
inline constexpr const char* kPlaceProperty = "sdx.fit";

struct Place {
  // Settings that determine the batches: if any of these changed, other batches would follow.
  std::int64_t samples = 0, batch_size = 0, accumulate = 1;
  std::uint64_t seed = 0;
  bool shuffle = true, drop_last = false;

  std::int64_t epoch = 0, batch = 0;  // that come next
  std::int64_t batches_done = 0;      // since training began

  // Figures of this epoch's batches so far.
  double loss_sum = 0;
  std::int64_t loss_samples = 0, right = 0, counted = 0;

  LossCurve curve;
  double point_sum = 0;  // of the curve's next point
  std::int64_t point_batches = 0;

  std::vector<FitEpoch> history;
  double best_loss = std::numeric_limits<double>::infinity();
  std::int64_t best_epoch = -1;

  void add_to_curve(double loss);
  // Epochs since the best one; 0 where there is none.
  std::int64_t epochs_since_best() const { return best_epoch < 0 ? 0 : epoch - 1 - best_epoch; }
};

std::string to_text(const Place& place);
// Throws Error(invalid_argument) for text that to_text() does not write.
Place place_from(std::string_view text);
// Throws Error(invalid_argument) that names the first difference.
void check_same_task(const Place& saved, const Place& now);

}  // namespace sdx::train::loop
