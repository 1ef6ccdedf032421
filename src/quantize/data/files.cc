// Calibration data from files.

#include <algorithm>
#include <cstring>
#include <sdx/image.hpp>
#include <sdx/quantize.hpp>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text/ascii.h"
#include "media/image.h"
#include "media/preprocess.h"
#include "onnx/reader.h"
#include "ops/infer.h"
#include "session/specs.h"
#include "tensor/element.h"
#include "tensor/npy.h"
#include "tensor/npz.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

std::string ending(const fs::path& file) { return ascii_lower(file.extension().string()); }

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& e : fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied)) {
    if (e.is_regular_file() && !e.path().filename().string().starts_with('.')) files.push_back(e.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<ValueSpec> needed(std::vector<ValueSpec> specs) {
  std::erase_if(specs, [](const ValueSpec& s) { return s.has_default; });
  return specs;
}

const ValueSpec& only_input(const std::vector<ValueSpec>& specs, const fs::path& data) {
  if (specs.size() == 1) return specs[0];
  std::vector<std::string> names;
  for (const ValueSpec& s : specs) names.push_back(s.name);
  fail(ErrorCode::invalid_argument,
       "'{}' is for a model with one input; this one has {}: {}; give an .npz with an array for each", data.string(),
       specs.size(), join(names));
}

// Converts between number types if every value fits.
Tensor converted(const Tensor& t, const ValueSpec& spec, const std::string& where) {
  if (spec.dtype == DataType::undefined || t.dtype() == spec.dtype) return t;
  if (t.dtype() == DataType::string || spec.dtype == DataType::string) {
    fail(ErrorCode::invalid_argument, "{}: the input '{}' takes {}, received {}", where, spec.name, spec.type, t.type_string());
  }
  Tensor out(spec.dtype, t.shape());
  for (std::int64_t i = 0; i < t.size(); ++i) set_element(out, i, element_as_double(t, i));
  return out;
}

// Arrays whose rows are samples.
class ArrayReader : public CalibrationDataReader {
 public:
  ArrayReader(std::vector<std::pair<std::string, Tensor>> arrays, std::int64_t rows, std::int64_t batch)
      : arrays_(std::move(arrays)), rows_(rows), batch_(batch) {}
  std::optional<NamedValues> get_next() override {
    // A batch that the model's extents cannot take is left out.
    if (next_ >= rows_ || (next_ > 0 && next_ + batch_ > rows_)) return std::nullopt;
    const std::int64_t count = std::min(batch_, rows_ - next_);
    NamedValues out;
    for (const auto& [name, array] : arrays_) {
      Shape shape = array.shape();
      shape[0] = count;
      const std::size_t row = array.bytes() / static_cast<std::size_t>(array.dim(0));
      Tensor t(array.dtype(), shape);
      std::memcpy(t.mutable_data(), static_cast<const std::byte*>(array.data()) + static_cast<std::size_t>(next_) * row,
                  t.bytes());
      out.add(name, std::move(t));
    }
    next_ += count;
    return out;
  }
  void rewind() override { next_ = 0; }

 private:
  std::vector<std::pair<std::string, Tensor>> arrays_;
  std::int64_t rows_, batch_, next_ = 0;
};

// Files, each a batch (arrays) or a sample (pictures).
class FileReader : public CalibrationDataReader {
 public:
  FileReader(std::vector<fs::path> files, std::vector<ValueSpec> specs, const CalibrationFiles& settings)
      : files_(std::move(files)), specs_(std::move(specs)), settings_(settings) {}
  std::optional<NamedValues> get_next() override {
    if (next_ >= files_.size()) return std::nullopt;
    const std::string where = "'" + files_[next_].string() + "'";
    if (media::has_picture_ending(files_[next_])) return pictures();
    if (ending(files_[next_]) == ".npy") {
      const ValueSpec& spec = only_input(specs_, files_[next_]);
      NamedValues out;
      out.add(spec.name, converted(read_npy(files_[next_++]), spec, where));
      return out;
    }
    NamedValues out;
    const NamedTensors arrays = read_npz(files_[next_++]);
    for (const ValueSpec& s : specs_) {
      const auto at = std::find_if(arrays.begin(), arrays.end(), [&](const auto& a) { return a.first == s.name; });
      if (at == arrays.end()) fail(ErrorCode::invalid_argument, "{} has no array '{}', which the model takes", where, s.name);
      out.add(s.name, converted(at->second, s, where));
    }
    return out;
  }
  void rewind() override { next_ = 0; }

 private:
  NamedValues pictures();

  std::vector<fs::path> files_;
  std::vector<ValueSpec> specs_;
  CalibrationFiles settings_;
  std::size_t next_ = 0;
};

NamedValues FileReader::pictures() {
  const ValueSpec& spec = only_input(specs_, files_[next_]);
  const std::int64_t fixed = spec.has_shape && spec.shape.size() == 4 ? spec.shape[0] : 1;
  const std::int64_t count = settings_.batch > 0 ? settings_.batch : std::max<std::int64_t>(1, fixed);
  ValueSpec one = spec;
  if (one.has_shape && one.shape.size() == 4) one.shape[0] = 1;
  std::vector<Tensor> rows;
  for (; static_cast<std::int64_t>(rows.size()) < count && next_ < files_.size(); ++next_) {
    rows.push_back(media::to_tensor(media::read_image(files_[next_]), settings_.preprocessing, &one));
    if (rows.back().shape() != rows[0].shape()) {
      fail(ErrorCode::invalid_argument, "'{}' is {}, but the picture before it is {}: all pictures of a batch need the same size",
           files_[next_].string(), to_string(rows.back().shape()), to_string(rows[0].shape()));
    }
  }
  Shape shape = rows[0].shape();
  if (shape.size() == 4) shape[0] = fixed > 1 ? count : static_cast<std::int64_t>(rows.size());
  Tensor all(rows[0].dtype(), shape);
  // If the model fixes the batch and there are too few pictures, the last ones are used again.
  const std::size_t times = all.bytes() / std::max<std::size_t>(1, rows[0].bytes());
  for (std::size_t i = 0; i < times; ++i) {
    const Tensor& row = rows[i % rows.size()];
    std::memcpy(static_cast<std::byte*>(all.mutable_data()) + i * row.bytes(), row.data(), row.bytes());
  }
  NamedValues out;
  out.add(spec.name, std::move(all));
  return out;
}

std::unique_ptr<CalibrationDataReader> array_reader(NamedTensors arrays, const std::vector<ValueSpec>& specs,
                                                    const fs::path& data, const CalibrationFiles& files) {
  const std::string where = "'" + data.string() + "'";
  std::vector<std::pair<std::string, Tensor>> used;
  std::int64_t rows = -1, fixed = 0;
  for (const ValueSpec& s : specs) {
    auto at = std::find_if(arrays.begin(), arrays.end(), [&](const auto& a) { return a.first == s.name; });
    if (at == arrays.end() && specs.size() == 1 && arrays.size() == 1) at = arrays.begin();
    if (at == arrays.end()) {
      std::vector<std::string> names;
      for (const auto& [name, tensor] : arrays) names.push_back(name);
      fail(ErrorCode::invalid_argument, "{} has no array '{}', which the model takes; it has {}", where, s.name, join(names));
    }
    Tensor t = converted(at->second, s, where);
    if (t.rank() == 0 || t.dim(0) == 0) fail(ErrorCode::invalid_argument, "{}: the array '{}' has no rows", where, s.name);
    if (s.has_shape && s.shape.size() != t.rank()) {
      fail(ErrorCode::invalid_argument, "{}: the array '{}' is {}, and the model takes {}", where, s.name, t.type_string(),
           s.type);
    }
    if (rows >= 0 && t.dim(0) != rows) {
      fail(ErrorCode::invalid_argument, "{}: the array '{}' has {} rows, and others {}", where, s.name, t.dim(0), rows);
    }
    rows = t.dim(0);
    if (s.has_shape && s.shape[0] > 0) fixed = s.shape[0];
    used.emplace_back(s.name, std::move(t));
  }
  if (rows < 0) fail(ErrorCode::invalid_argument, "the model takes no inputs: there is nothing to calibrate with");
  if (files.samples > 0) rows = std::min(rows, files.samples);
  const std::int64_t batch = fixed > 0 ? fixed : files.batch > 0 ? files.batch : 1;
  if (rows < batch) fail(ErrorCode::invalid_argument, "{} has {} rows, and the model takes {} at a time", where, rows, batch);
  return std::make_unique<ArrayReader>(std::move(used), rows, batch);
}

std::vector<ValueSpec> specs_of(const fs::path& model) {
  Model m = read_model(model);
  return needed(session::input_specs(m.graph));
}

}  // namespace

std::unique_ptr<CalibrationDataReader> open_calibration_data(const fs::path& model, const fs::path& data,
                                                             const CalibrationFiles& files) {
  const std::vector<ValueSpec> specs = specs_of(model);
  std::error_code error;
  if (!fs::exists(data, error)) fail(ErrorCode::io, "there is no '{}'", data.string());
  if (!fs::is_directory(data, error)) {
    if (ending(data) == ".npz") return array_reader(read_npz(data), specs, data, files);
    if (ending(data) == ".npy") {
      const ValueSpec& spec = only_input(specs, data);
      return array_reader({{spec.name, read_npy(data)}}, specs, data, files);
    }
    fail(ErrorCode::invalid_argument, "'{}': expected an .npz, an .npy, or a folder of such files or of pictures", data.string());
  }
  std::vector<fs::path> found = files_in(data);
  std::erase_if(found,
                [](const fs::path& f) { return !media::has_picture_ending(f) && ending(f) != ".npy" && ending(f) != ".npz"; });
  if (found.empty()) fail(ErrorCode::invalid_argument, "the folder '{}' has no pictures, .npy or .npz files", data.string());
  if (files.samples > 0 && static_cast<std::int64_t>(found.size()) > files.samples) {
    found.resize(static_cast<std::size_t>(files.samples));
  }
  return std::make_unique<FileReader>(std::move(found), specs, files);
}

}  // namespace sdx
