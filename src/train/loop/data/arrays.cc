#include "train/loop/data/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/suggest.h"
#include "tensor/dispatch.h"
#include "tensor/element.h"
#include "tensor/npy.h"
#include "tensor/npz.h"
#include "train/loop/data/labels.h"

namespace sdx::train::loop {
namespace {

namespace fs = std::filesystem;

bool fits(std::span<const std::int64_t> extents, std::span<const std::int64_t> declared) {
  return std::equal(extents.begin(), extents.end(), declared.begin(), declared.end(),
                    [](std::int64_t have, std::int64_t want) { return want < 0 || have == want; });
}

// The row's extents as declared, where these leave none open and hold as many elements.
bool reshape_row(const Tensor& array, const ValueSpec& spec, Shape& out) {
  std::int64_t row = 1;
  for (std::size_t i = 1; i < spec.shape.size(); ++i) {
    if (spec.shape[i] < 0) return false;
    row *= spec.shape[i];
  }
  const std::int64_t rows = array.dim(0);
  if (rows == 0 || array.size() != rows * row) return false;
  out = spec.shape;
  out[0] = rows;
  return true;
}

// Rows of several arrays, converted.
class ArrayData : public Dataset {
 public:
  ArrayData(std::vector<Tensor> arrays, std::vector<DataType> types, std::string where)
      : arrays_(std::move(arrays)), types_(std::move(types)), where_(std::move(where)) {
    for (const Tensor& a : arrays_) {
      if (a.rank() == 0) fail(ErrorCode::invalid_argument, "{}an array without axes has no samples", prefix());
      if (a.dim(0) != arrays_[0].dim(0)) {
        fail(ErrorCode::invalid_argument, "{}the arrays have {} and {} samples", prefix(), arrays_[0].dim(0), a.dim(0));
      }
      if (a.dtype() == DataType::string || bit_width(a.dtype()) < 8) {
        fail(ErrorCode::invalid_argument, "{}an array of {} cannot be trained with", prefix(), name(a.dtype()));
      }
    }
  }
  std::int64_t size() const override { return arrays_.empty() ? 0 : arrays_[0].dim(0); }
  std::vector<Tensor> batch(std::span<const std::int64_t> samples, std::int64_t epoch) override;

 private:
  std::string prefix() const { return where_.empty() ? "" : where_ + ": "; }
  void check_finite(const Tensor& rows, std::span<const std::int64_t> samples, std::size_t index) const;
  Tensor converted(const Tensor& rows, std::span<const std::int64_t> samples, std::size_t index) const;

  std::vector<Tensor> arrays_;
  std::vector<DataType> types_;
  std::string where_;
};

Tensor rows_of(const Tensor& array, std::span<const std::int64_t> samples) {
  Shape shape = array.shape();
  const std::size_t row = shape[0] == 0 ? 0 : array.bytes() / static_cast<std::size_t>(shape[0]);
  shape[0] = static_cast<std::int64_t>(samples.size());
  Tensor out(array.dtype(), std::move(shape));
  auto* to = static_cast<std::byte*>(out.mutable_data());
  for (const std::int64_t s : samples) {
    if (row != 0) std::memcpy(to, static_cast<const std::byte*>(array.data()) + static_cast<std::size_t>(s) * row, row);
    to += row;
  }
  return out;
}

void ArrayData::check_finite(const Tensor& rows, std::span<const std::int64_t> samples, std::size_t index) const {
  const auto values = rows.values<float>();
  float sum = 0;  // 0 unless one of them is not finite: x * 0
  for (const float v : values) sum += v * 0.0F;
  if (sum == 0) return;
  const auto bad = std::find_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
  const std::size_t at = static_cast<std::size_t>(bad - values.begin()) / (values.size() / samples.size());
  fail(ErrorCode::invalid_argument, "{}sample {} of array {} contains {}; remove such samples, or fill the gaps", prefix(),
       samples[at], index + 1, *bad);
}

Tensor ArrayData::converted(const Tensor& rows, std::span<const std::int64_t> samples, std::size_t index) const {
  const DataType type = types_[index] == DataType::undefined ? rows.dtype() : types_[index];
  if (rows.dtype() == type) return rows;
  if (type == DataType::float32) return to_float32(rows);
  Tensor out(type, rows.shape());
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    if (is_floating(type)) {
      set_element(out, i, element_as_double(rows, i));
      continue;
    }
    const bool floating = is_floating(rows.dtype());
    const double value = floating ? element_as_double(rows, i) : 0;
    const std::int64_t whole = element_as_int(rows, i);  // saturates
    set_element_int(out, i, whole);
    if ((floating && static_cast<double>(whole) != value) || element_as_int(out, i) != whole) {
      const std::int64_t at = i / std::max<std::int64_t>(1, rows.size() / rows.dim(0));
      fail(ErrorCode::invalid_argument, "{}sample {} of array {} is {}, and the model takes {}", prefix(),
           samples[static_cast<std::size_t>(at)], index + 1, floating ? fmt::format("{}", value) : fmt::format("{}", whole),
           name(type));
    }
  }
  return out;
}

std::vector<Tensor> ArrayData::batch(std::span<const std::int64_t> samples, std::int64_t) {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    out.push_back(converted(rows_of(arrays_[i], samples), samples, i));
    if (out.back().dtype() == DataType::float32) check_finite(out.back(), samples, i);
  }
  return out;
}

struct Named {
  std::string name;
  Tensor array;
};

std::vector<Named> read_all(const fs::path& path) {
  std::vector<Named> out;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    for (auto& [name, tensor] : read_npz(path)) out.push_back({name, std::move(tensor)});
    return out;
  }
  for (const fs::directory_entry& e : fs::directory_iterator(path)) {
    if (e.path().extension() == ".npy") out.push_back({e.path().stem().string(), read_npy(e.path())});
  }
  std::sort(out.begin(), out.end(), [](const Named& a, const Named& b) { return a.name < b.name; });
  return out;
}

bool is_label_name(const std::string& name) {
  return name == "y" || name == "label" || name == "labels" || name == "target" || name == "targets";
}

// The arrays in the order of the inputs: by name; or the label by one of its usual names and the others in order; or all in
// order.
std::vector<Named> by_input(const Task& task, std::vector<Named> all, const std::string& where) {
  const auto find = [&](const std::string& name) {
    return std::find_if(all.begin(), all.end(), [&](const Named& n) { return n.name == name; });
  };
  std::vector<std::string> names;
  for (const Named& n : all) names.push_back(n.name);
  std::vector<Named> out(task.inputs.size());
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto it = find(task.inputs[i].name);
    if (it == all.end()) {
      open.push_back(i);
      continue;
    }
    out[i] = std::move(*it);
    all.erase(it);
  }
  const auto label = std::find(open.begin(), open.end(), task.label);
  const auto named = std::find_if(all.begin(), all.end(), [](const Named& n) { return is_label_name(n.name); });
  if (label != open.end() && named != all.end()) {
    out[task.label] = std::move(*named);
    all.erase(named);
    open.erase(label);
  }
  if (all.size() < open.size() || (open.size() == out.size() && all.size() > open.size())) {
    std::vector<std::string> want;
    for (const ValueSpec& spec : task.inputs) want.push_back(spec.name + ": " + spec.type);
    fail(ErrorCode::invalid_argument, "{}: expected arrays for the inputs {}; found {}", where, join(want), join(names));
  }
  for (std::size_t i = 0; i < open.size(); ++i) out[open[i]] = std::move(all[i]);
  return out;
}

std::unique_ptr<Dataset> data_of(const SourceRequest& r, std::vector<Named> all, const std::string& where,
                                 const std::vector<std::string>* known, Source& source) {
  std::vector<Named> named = by_input(r.task, std::move(all), where);
  std::vector<Tensor> arrays;
  for (std::size_t i = 0; i < named.size(); ++i) {
    const std::string what = fmt::format("{}, array '{}'", where, named[i].name);
    Tensor array = named[i].array;
    if (i == r.task.label) array = numbered_labels(array, r.task, known, what, source.classes);
    arrays.push_back(fitted_array(array, r.task.inputs[i], what, source.batch));
  }
  return array_data(r.task, std::move(arrays), where);
}

}  // namespace

Tensor fitted_array(const Tensor& array, const ValueSpec& spec, const std::string& where, std::int64_t& batch) {
  if (array.rank() == 0) fail(ErrorCode::invalid_argument, "{} is a single number; expected one sample in each row", where);
  if (!spec.has_shape || spec.shape.empty()) return array;
  const std::span<const std::int64_t> have(array.shape()), want(spec.shape);
  if (have.size() == want.size() && fits(have.subspan(1), want.subspan(1))) return array;
  if (have.size() == want.size() + 1 && fits(have.subspan(2), want.subspan(1))) {
    Shape flat(have.begin() + 1, have.end());
    batch = flat[0];
    flat[0] *= have[0];
    return array.reshaped(std::move(flat));
  }
  Shape shape;
  if (have.size() != want.size() && reshape_row(array, spec, shape)) return array.reshaped(std::move(shape));
  fail(ErrorCode::invalid_argument, "{} is {}, and the model's input '{}' takes {}", where, array.type_string(), spec.name,
       spec.type);
}

Tensor numbered_labels(const Tensor& labels, const Task& task, const std::vector<std::string>* known, const std::string& where,
                       std::vector<std::string>& names) {
  if (labels.dtype() != DataType::string) return labels;
  const auto texts = labels.values<std::string>();
  const std::vector<std::string> words(texts.begin(), texts.end());
  const Classes classes(words, known);
  names = classes.names();
  check_class_count(task, names, where);
  Tensor out(DataType::int64, labels.shape());
  std::transform(words.begin(), words.end(), out.mutable_values<std::int64_t>().begin(),
                 [&](const std::string& w) { return classes.number_of(w); });
  return out;
}

std::unique_ptr<Dataset> array_data(const Task& task, std::vector<Tensor> arrays, std::string where) {
  std::vector<DataType> types;
  for (const ValueSpec& spec : task.inputs) types.push_back(spec.dtype);
  const Tensor labels = arrays.at(task.label);
  auto data = std::make_unique<ArrayData>(std::move(arrays), std::move(types), where);
  if (task.classification && task.classes > 0) {
    const std::int64_t row = std::max<std::int64_t>(1, labels.size() / std::max<std::int64_t>(1, labels.dim(0)));
    for (std::int64_t i = 0; i < labels.size(); ++i) {
      const std::int64_t label = element_as_int(labels, i);
      if (label != task.ignored && (label < 0 || label >= task.classes)) {
        check_label(task, label, fmt::format("{}, sample {}", where, i / row));
      }
    }
  }
  return data;
}

Source open_arrays(const SourceRequest& r) {
  const std::string where = "'" + r.path.string() + "'";
  std::vector<Named> all = read_all(r.path), eval;
  constexpr std::string_view kEval = "eval_";
  for (auto it = all.begin(); it != all.end();) {
    const bool input =
        std::any_of(r.task.inputs.begin(), r.task.inputs.end(), [&](const ValueSpec& s) { return s.name == it->name; });
    if (input || !it->name.starts_with(kEval)) {
      ++it;
      continue;
    }
    eval.push_back({it->name.substr(kEval.size()), std::move(it->array)});
    it = all.erase(it);
  }
  if (all.empty()) fail(ErrorCode::invalid_argument, "{} holds no arrays", where);
  Source source;
  source.data = data_of(r, std::move(all), where, r.known, source);
  source.kind = fmt::format("{} samples in {} arrays", source.data->size(), r.task.inputs.size());
  if (!eval.empty()) {
    Source ignored;
    source.eval = data_of(r, std::move(eval), where + " (eval_…)", &source.classes, ignored);
  }
  return source;
}

}  // namespace sdx::train::loop

namespace sdx::train {

std::unique_ptr<Dataset> dataset_of(std::vector<Tensor> arrays) {
  if (arrays.empty()) fail(ErrorCode::invalid_argument, "there are no arrays");
  std::vector<DataType> types(arrays.size(), DataType::undefined);
  return std::make_unique<loop::ArrayData>(std::move(arrays), std::move(types), "");
}

}  // namespace sdx::train
