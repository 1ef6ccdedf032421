#pragma once
// Data as arrays with a sample for each row.

#include <string>
#include <vector>

#include "train/loop/data/open.h"

namespace sdx::train::loop {

// An array for the input `spec`: reshaped where only the way its rows are written differs, flattened where it holds whole
// batches. `batch` becomes the extent of those. Throws Error(invalid_argument) that starts with `where`.
Tensor fitted_array(const Tensor& array, const ValueSpec& spec, const std::string& where, std::int64_t& batch);

// Arrays for the inputs of the task. Rows are converted to the inputs' types on demand: a number that is not finite, or that an
// integer cannot hold, is then an Error(invalid_argument) that starts with `where`. A label out of range is one at once.
std::unique_ptr<Dataset> array_data(const Task& task, std::vector<Tensor> arrays, std::string where);

// Labels that are text become numbers. Others are given back.
Tensor numbered_labels(const Tensor& labels, const Task& task, const std::vector<std::string>* known, const std::string& where,
                       std::vector<std::string>& names);

}  // namespace sdx::train::loop
