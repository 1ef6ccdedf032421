#pragma once
// One line on a terminal that says how far a batch is.

#include <chrono>
#include <cstdint>

#include "vision/batch/request.h"

namespace sdx::vision::batch {

class Progress {
 public:
  // `total`: 0 if unknown.
  Progress(const Console& console, std::int64_t total);

  void show(std::int64_t done);    // at most ten times a second
  void clear() { line_.clear(); }  // before something else is written
  double seconds() const;

 private:
  StatusLine line_;
  std::int64_t total_;
  std::chrono::steady_clock::time_point start_;
};

// "[####    ] 50/100  2.0 a second, 25 s left", in less than `columns` letters; `total`: 0 if unknown.
std::string progress_line(std::int64_t done, std::int64_t total, double seconds, std::size_t columns);

}  // namespace sdx::vision::batch
