#pragma once
// Makes batches ahead of their use on a thread of its own, in the order of the requests.

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include <sdx/train/fit.hpp>

namespace sdx::train::loop {

struct BatchRequest {
  std::vector<std::int64_t> samples;
  std::int64_t epoch = 0;
};

class Loader {
 public:
  // `next` is called by the loader's thread; it returns nothing at the end. `ahead`: the most batches that wait.
  Loader(Dataset& data, std::function<std::optional<BatchRequest>()> next, std::size_t ahead = 2);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch; nothing at the end. Throws what making it threw.
  std::optional<std::vector<Tensor>> take();

 private:
  void work();

  Dataset& data_;
  std::function<std::optional<BatchRequest>()> next_;
  const std::size_t ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<Tensor>> ready_;
  std::exception_ptr error_;
  bool done_ = false, stop_ = false;
  std::thread thread_;  // last: it uses all of the others
};

}  // namespace sdx::train::loop
