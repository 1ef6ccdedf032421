#pragma once
// A training as one HTML file.

#include <string>
#include <utility>
#include <vector>

#include <sdx/train/fit.hpp>

namespace sdx::train::loop {

struct Report {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  // name and value, in order
  std::vector<std::string> notes;
  std::vector<FitEpoch> history;
  LossCurve curve;
  std::int64_t batches_per_epoch = 0;
};

// Everything inside, without addresses of any kind; the table can be read without scripts.
std::string report_html(const Report& report);

}  // namespace sdx::train::loop
