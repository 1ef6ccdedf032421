// The frozen part's results for all samples.

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <numeric>
#include <system_error>

#include "base/error.h"
#include "base/system/files/placing.h"
#include "tensor/element.h"
#include "train/loop/features.h"
#include "train/loop/loader.h"

namespace sdx::train::loop {
namespace {

constexpr std::int64_t kChecked = 4;  // samples that are also computed alone
constexpr double kTolerance = 1e-3;   // of the largest value: other sums than in a batch

class DiskMemory {
 public:
  explicit DiskMemory(std::size_t bytes) : bytes_(bytes), data_(take_disk_memory(bytes)) {
    if (data_ != nullptr) return;
    fail(ErrorCode::io,
         "--cache-features: {} bytes of features do not fit into --memory, and not into a temporary file: {}; raise "
         "--memory, or set TMPDIR to a folder with more room",
         bytes_, std::generic_category().message(errno));
  }
  ~DiskMemory() { give_back_disk_memory(data_, bytes_); }
  DiskMemory(const DiskMemory&) = delete;
  DiskMemory& operator=(const DiskMemory&) = delete;
  void* data() const { return data_; }

 private:
  std::size_t bytes_;
  void* data_;
};

Tensor make_array(DataType type, const Shape& shape, std::uint64_t& memory_left) {
  const std::size_t bytes = byte_size(type, element_count(shape));
  if (bytes <= memory_left) {
    memory_left -= bytes;
    return Tensor(type, shape);
  }
  const auto memory = std::make_shared<DiskMemory>(bytes);
  return Tensor::view_mutable(memory->data(), type, shape, memory);
}

class Cutting {
 public:
  Cutting(Dataset& samples, const std::vector<std::string>& given, const Session& frozen,
          const std::vector<std::string>& features, const std::vector<std::string>& wanted, const FeatureOptions& options)
      : samples_(samples),
        given_(given),
        frozen_(frozen),
        features_(features),
        wanted_(wanted),
        o_(options),
        memory_left_(options.memory) {}

  std::unique_ptr<Dataset> run();

 private:
  // If the model takes batches of one size only, the last one is filled with samples from before it.
  std::int64_t first_of(std::int64_t begin, std::int64_t end) const {
    return o_.fixed_batch ? std::max<std::int64_t>(0, end - o_.batch) : begin;
  }
  BatchRequest request(std::int64_t begin, std::int64_t end) const;
  // The wanted values by name; `raw`: the results of request().
  std::vector<Tensor> values(const std::vector<Tensor>& raw, std::int64_t begin, std::int64_t end) const;
  void store(const std::vector<Tensor>& batch, std::int64_t begin);
  void check_alone(const std::vector<Tensor>& batch) const;

  Dataset& samples_;
  const std::vector<std::string>& given_;
  const Session& frozen_;
  const std::vector<std::string>& features_;
  const std::vector<std::string>& wanted_;
  const FeatureOptions& o_;
  std::uint64_t memory_left_;
  std::vector<Tensor> arrays_;
};

BatchRequest Cutting::request(std::int64_t begin, std::int64_t end) const {
  const std::int64_t first = first_of(begin, end);
  std::vector<std::int64_t> which(static_cast<std::size_t>(end - first));
  std::iota(which.begin(), which.end(), first);
  return {std::move(which), -1};
}

std::vector<Tensor> Cutting::values(const std::vector<Tensor>& raw, std::int64_t begin, std::int64_t end) const {
  const std::int64_t first = first_of(begin, end);
  const auto place_of = [&](const std::string& name) {
    return static_cast<std::size_t>(std::find(given_.begin(), given_.end(), name) - given_.begin());
  };
  NamedValues inputs;
  for (const ValueSpec& spec : frozen_.inputs()) inputs.add(spec.name, raw.at(place_of(spec.name)));
  const NamedValues outputs = frozen_.run(inputs);
  std::vector<Tensor> out;
  for (const std::string& name : wanted_) {
    const bool feature = std::find(features_.begin(), features_.end(), name) != features_.end();
    Tensor all = feature ? outputs.tensor(name) : raw.at(place_of(name));
    if (all.rank() == 0 || all.dim(0) != end - first) {
      fail(ErrorCode::invalid_argument, "--cache-features: '{}' is {} for a batch of {}: it has no row for each sample", name,
           all.type_string(), end - first);
    }
    if (first != begin) {
      const std::size_t row = all.bytes() / static_cast<std::size_t>(end - first);
      Shape shape = all.shape();
      shape[0] = end - begin;
      Tensor part(all.dtype(), std::move(shape));
      std::memcpy(part.mutable_data(), static_cast<const std::byte*>(all.data()) + static_cast<std::size_t>(begin - first) * row,
                  part.bytes());
      all = std::move(part);
    }
    out.push_back(std::move(all));
  }
  return out;
}

void Cutting::store(const std::vector<Tensor>& batch, std::int64_t begin) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (begin == 0) {
      Shape shape = batch[i].shape();
      shape[0] = samples_.size();
      arrays_.push_back(make_array(batch[i].dtype(), shape, memory_left_));
    }
    Tensor& array = arrays_[i];
    if (!std::equal(array.shape().begin() + 1, array.shape().end(), batch[i].shape().begin() + 1, batch[i].shape().end())) {
      fail(ErrorCode::invalid_argument, "--cache-features: '{}' is {} for one batch and another size for others", wanted_[i],
           batch[i].type_string());
    }
    const std::size_t row = array.bytes() / static_cast<std::size_t>(samples_.size());
    std::memcpy(static_cast<std::byte*>(array.mutable_data()) + static_cast<std::size_t>(begin) * row, batch[i].data(),
                batch[i].bytes());
  }
}

void Cutting::check_alone(const std::vector<Tensor>& batch) const {
  if (o_.fixed_batch || o_.batch < 2) return;
  for (std::int64_t s = 0; s < std::min(kChecked, batch[0].dim(0)); ++s) {
    const std::vector<std::int64_t> which{s};
    const std::vector<Tensor> alone = values(samples_.batch(which, -1), s, s + 1);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!is_floating(batch[i].dtype())) continue;
      const std::int64_t row = alone[i].size();
      double largest = 0, difference = 0;
      for (std::int64_t k = 0; k < row; ++k) {
        const double a = element_as_double(alone[i], k), b = element_as_double(batch[i], s * row + k);
        largest = std::max(largest, std::abs(a));
        difference = std::max(difference, std::abs(a - b));
      }
      if (difference <= kTolerance * largest) continue;
      fail(ErrorCode::invalid_argument,
           "--cache-features: a sample's '{}' differs by {} with the other samples of its batch: it cannot be computed once",
           wanted_[i], difference);
    }
  }
}

std::unique_ptr<Dataset> Cutting::run() {
  const std::int64_t count = samples_.size(), first = std::min(count, o_.batch);
  {
    const std::vector<Tensor> batch = values(samples_.batch(request(0, first).samples, -1), 0, first);
    check_alone(batch);
    store(batch, 0);
  }
  std::int64_t asked = first, done = first;
  Loader loader(samples_, [&]() -> std::optional<BatchRequest> {
    if (asked == count) return std::nullopt;
    const std::int64_t begin = asked;
    asked = std::min(count, begin + o_.batch);
    return request(begin, asked);
  });
  while (const std::optional<std::vector<Tensor>> raw = loader.take()) {
    const std::int64_t end = std::min(count, done + o_.batch);
    store(values(*raw, done, end), done);
    done = end;
    if (o_.progress) o_.progress(done, count);
  }
  return dataset_of(std::move(arrays_));
}

}  // namespace

std::unique_ptr<Dataset> feature_data(Dataset& samples, const std::vector<std::string>& given, const Session& frozen,
                                      const std::vector<std::string>& features, const std::vector<std::string>& wanted,
                                      const FeatureOptions& options) {
  return Cutting(samples, given, frozen, features, wanted, options).run();
}

}  // namespace sdx::train::loop
