#include "train/loop/data/subset.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "base/error.h"
#include "train/loop/random.h"

namespace sdx::train::loop {
namespace {

struct Shared {
  std::unique_ptr<Dataset> data;
  std::mutex mutex;
};

class Subset : public Dataset {
 public:
  Subset(std::shared_ptr<Shared> all, std::vector<std::int64_t> samples, bool validation)
      : all_(std::move(all)), samples_(std::move(samples)), validation_(validation) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(samples_.size()); }
  std::vector<Tensor> batch(std::span<const std::int64_t> samples, std::int64_t epoch) override {
    std::vector<std::int64_t> numbers;
    for (const std::int64_t s : samples) numbers.push_back(samples_.at(static_cast<std::size_t>(s)));
    const std::scoped_lock lock(all_->mutex);
    return all_->data->batch(numbers, validation_ ? -1 : epoch);
  }

 private:
  std::shared_ptr<Shared> all_;
  std::vector<std::int64_t> samples_;
  bool validation_;
};

}  // namespace

std::pair<std::unique_ptr<Dataset>, std::unique_ptr<Dataset>> split(std::unique_ptr<Dataset> all, double share,
                                                                    std::uint64_t seed) {
  const std::int64_t count = all->size();
  if (!(share > 0 && share < 1)) {
    fail(ErrorCode::invalid_argument, "the share for validation is {}; it must be between 0 and 1, such as 0.1", share);
  }
  if (count < 2) fail(ErrorCode::invalid_argument, "{} sample cannot be split in two", count);
  const auto wanted = static_cast<std::int64_t>(std::llround(share * static_cast<double>(count)));
  const std::int64_t kept = std::clamp<std::int64_t>(wanted, 1, count - 1);
  const std::vector<std::int64_t> order = shuffled(count, mixed(seed, {kSplit}), 0);
  std::vector<std::int64_t> validation(order.begin(), order.begin() + kept), train(order.begin() + kept, order.end());
  std::sort(validation.begin(), validation.end());
  std::sort(train.begin(), train.end());
  const auto shared = std::make_shared<Shared>();
  shared->data = std::move(all);
  return {std::make_unique<Subset>(shared, std::move(train), false),
          std::make_unique<Subset>(shared, std::move(validation), true)};
}

}  // namespace sdx::train::loop
