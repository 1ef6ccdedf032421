// Folders of pictures: each folder is a class.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <sdx/image.hpp>

#include "base/error.h"
#include "base/thread_pool.h"
#include "media/image.h"
#include "media/preprocess.h"
#include "train/loop/data/labels.h"
#include "train/loop/data/open.h"

namespace sdx::train::loop {
namespace {

namespace fs = std::filesystem;
using media::Image;

constexpr std::size_t kMostPictures = 50'000'000;

struct Sample {
  fs::path file;
  std::int64_t label = 0;
};

struct Layout {
  Preprocessing::Layout layout = Preprocessing::Layout::nchw;
  std::int64_t channels = -1, height = -1, width = -1;
};

// The layout of the input's extents, as media::to_tensor() assumes without a setting.
Layout layout_of(const ValueSpec& spec, const Preprocessing& p) {
  using enum Preprocessing::Layout;
  const auto colours = [](std::int64_t extent) { return extent == 1 || extent == 3; };
  const Shape& s = spec.shape;
  const std::size_t rank = spec.has_shape ? s.size() : 4;
  Layout out;
  if (rank != 4 && rank != 3) {
    fail(ErrorCode::invalid_argument, "the model's input '{}' takes {}: no pictures, which are [batch, 3, height, width]",
         spec.name, spec.type);
  }
  if (rank == 3) {
    out.layout = hw;
    if (spec.has_shape) out = {hw, 1, s[1], s[2]};
    return out;
  }
  const bool last = spec.has_shape && colours(s[3]) && !colours(s[1]);
  out.layout = p.layout.value_or(last ? nhwc : nchw);
  if (out.layout != nchw && out.layout != nhwc) {
    fail(ErrorCode::invalid_argument, "the layout of pictures for the input '{}' is nchw or nhwc", spec.name);
  }
  if (!spec.has_shape) return out;
  if (out.layout == nchw) return {nchw, s[1], s[2], s[3]};
  return {nhwc, s[3], s[1], s[2]};
}

// Pictures in the model's size as bytes, from there to numbers. Random changes come between the two.
class Preparing {
 public:
  Preparing(const ValueSpec& spec, const Preprocessing& p) : spec_(spec), first_(p), second_(p) {
    const Layout layout = layout_of(spec, p);
    // A sample's own extents: without the batch's.
    spec_.shape = layout.layout == Preprocessing::Layout::hw ? Shape{layout.height, layout.width} : spec_.shape;
    if (!spec_.shape.empty() && layout.layout != Preprocessing::Layout::hw) spec_.shape[0] = 1;
    const Preprocessing::Color color =
        p.color.value_or(layout.channels == 1 ? Preprocessing::Color::gray : Preprocessing::Color::rgb);
    const auto side = [](std::int64_t extent) { return extent > 0 && extent < 65536 ? static_cast<int>(extent) : 0; };
    const int height = side(layout.height), width = side(layout.width);
    if (first_.shorter_side > 0 && first_.crop_width == 0) {
      first_.crop_width = width;
      first_.crop_height = height;
    }
    if (first_.crop_width == 0 && first_.shorter_side == 0) {
      if (first_.width == 0) first_.width = width;
      if (first_.height == 0) first_.height = height;
    }
    sized_ = first_.crop_width > 0 || (first_.width > 0 && first_.height > 0);
    first_.layout = Preprocessing::Layout::hwc;
    first_.color = color == Preprocessing::Color::gray ? Preprocessing::Color::gray : Preprocessing::Color::rgb;
    first_.normalize = "none";
    first_.scale.reset();
    first_.mean.clear();
    first_.deviation.clear();
    second_.width = second_.height = second_.shorter_side = second_.crop_width = second_.crop_height = 0;
    second_.fit = Preprocessing::Fit::stretch;
    second_.layout = layout.layout;
    second_.color = color;
    bytes_.dtype = DataType::uint8;
  }

  bool sized() const { return sized_; }

  Image picture(const fs::path& file) const {
    const Tensor t = media::to_tensor(media::read_image(file), first_, &bytes_);
    Image image;
    image.height = static_cast<int>(t.dim(0));
    image.width = static_cast<int>(t.dim(1));
    image.channels = static_cast<int>(t.dim(2));
    const auto values = t.values<std::uint8_t>();
    image.pixels.assign(values.begin(), values.end());
    return image;
  }
  Tensor numbers(const Image& image) const { return media::to_tensor(image, second_, &spec_); }

 private:
  ValueSpec spec_, bytes_;
  Preprocessing first_, second_;
  bool sized_ = false;
};

class PictureData : public Dataset {
 public:
  PictureData(const SourceRequest& r, std::vector<Sample> samples, std::size_t input)
      : task_(r.task),
        input_(input),
        prepare_(task_.inputs[input], r.settings.preprocessing),
        samples_(std::move(samples)),
        kept_(samples_.size()),
        bad_(samples_.size()),
        seed_(r.settings.seed),
        memory_(r.settings.memory),
        skip_bad_(r.settings.skip_bad),
        pool_(r.settings.workers) {
    if (r.augment) augmentation_ = r.settings.augmentation;
    if (!prepare_.sized()) {
      fail(ErrorCode::invalid_argument,
           "the model's input '{}' takes {}, pictures of any size, but those of a batch must have one: "
           "give it with --resize WIDTHxHEIGHT",
           task_.inputs[input].name, task_.inputs[input].type);
    }
  }
  std::int64_t size() const override { return static_cast<std::int64_t>(samples_.size()); }
  std::vector<Tensor> batch(std::span<const std::int64_t> samples, std::int64_t epoch) override;

 private:
  std::shared_ptr<const Image> picture(std::size_t sample);
  Tensor row(std::size_t sample, std::int64_t asked, std::int64_t epoch);
  Tensor labels(std::span<const std::size_t> used) const;

  const Task task_;
  const std::size_t input_;
  const Preparing prepare_;
  std::vector<Sample> samples_;
  std::vector<std::shared_ptr<const Image>> kept_;  // decoded before; each is looked at by one thread at a time
  std::vector<std::atomic<bool>> bad_;
  const std::uint64_t seed_, memory_;
  std::atomic<std::uint64_t> used_bytes_{0};
  const bool skip_bad_;
  Augmentation augmentation_;
  ThreadPool pool_;
};

// Null: it cannot be read, and is left out.
std::shared_ptr<const Image> PictureData::picture(std::size_t sample) {
  if (kept_[sample]) return kept_[sample];
  if (bad_[sample]) return nullptr;
  try {
    auto image = std::make_shared<const Image>(prepare_.picture(samples_[sample].file));
    const std::uint64_t bytes = image->pixels.size();
    if (used_bytes_.fetch_add(bytes) + bytes <= memory_) {
      kept_[sample] = image;
    } else {
      used_bytes_ -= bytes;
    }
    return image;
  } catch (const Error& e) {
    if (!skip_bad_) {
      fail(e.code(), "'{}': {}; --on-bad skip leaves such pictures out", samples_[sample].file.string(), e.message());
    }
    bad_[sample] = true;
    return nullptr;
  }
}

Tensor PictureData::labels(std::span<const std::size_t> used) const {
  const ValueSpec& spec = task_.label_input();
  Shape shape{static_cast<std::int64_t>(used.size())};
  for (std::size_t i = 1; i < spec.shape.size(); ++i) shape.push_back(1);
  const DataType type = spec.dtype == DataType::int32 ? DataType::int32 : DataType::int64;
  Tensor out(type, std::move(shape));
  for (std::size_t i = 0; i < used.size(); ++i) {
    const std::int64_t label = samples_[used[i]].label;
    if (type == DataType::int32) {
      out.mutable_values<std::int32_t>()[i] = static_cast<std::int32_t>(label);
    } else {
      out.mutable_values<std::int64_t>()[i] = label;
    }
  }
  return out;
}

// The sample's numbers; undefined where it cannot be read. `asked`: the sample that it stands for.
Tensor PictureData::row(std::size_t sample, std::int64_t asked, std::int64_t epoch) {
  const std::shared_ptr<const Image> image = picture(sample);
  if (!image) return {};
  if (!augmentation_.any() || epoch < 0) return prepare_.numbers(*image);
  Image changed = *image;
  Random random(seed_, {static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(asked), kAugment});
  augment(changed, augmentation_, random);
  return prepare_.numbers(changed);
}

std::vector<Tensor> PictureData::batch(std::span<const std::int64_t> samples, std::int64_t epoch) {
  std::vector<Tensor> rows(samples.size());
  std::vector<std::size_t> used(samples.begin(), samples.end());
  pool_.parallel_for(static_cast<std::int64_t>(samples.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      rows[i] = row(used[i], samples[i], epoch);
    }
  });
  // One that cannot be read is replaced by the next that can: the batch keeps its size.
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t tries = 1; !rows[i].defined() && tries < samples_.size(); ++tries) {
      used[i] = (used[i] + 1) % samples_.size();
      rows[i] = row(used[i], samples[i], epoch);
    }
    if (!rows[i].defined()) fail(ErrorCode::invalid_argument, "none of the {} pictures can be read", samples_.size());
  }
  Shape shape = rows.at(0).shape();
  if (rows[0].rank() == 4) {
    shape[0] = static_cast<std::int64_t>(rows.size());
  } else {
    shape.insert(shape.begin(), static_cast<std::int64_t>(rows.size()));
  }
  Tensor all(rows[0].dtype(), std::move(shape));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(static_cast<std::byte*>(all.mutable_data()) + i * rows[0].bytes(), rows[i].data(), rows[0].bytes());
  }
  std::vector<Tensor> out(2);
  out[input_] = std::move(all);
  out[task_.label] = labels(used);
  return out;
}

std::vector<std::string> folders_in(const fs::path& path) {
  std::vector<std::string> names;
  for (const fs::directory_entry& e : fs::directory_iterator(path)) {
    if (e.is_directory() && !e.path().filename().string().starts_with('.')) names.push_back(e.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<fs::path> pictures_in(const fs::path& path) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& e : fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied)) {
    if (e.is_regular_file() && media::has_picture_ending(e.path())) files.push_back(e.path());
    if (files.size() > kMostPictures)
      fail(ErrorCode::invalid_argument, "'{}' has more than {} pictures", path.string(), kMostPictures);
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The one input that is not a label.
std::size_t picture_input(const Task& task) {
  const std::vector<std::size_t> features = task.features();
  if (features.size() == 1 && task.inputs.size() == 2) return features[0];
  fail(ErrorCode::invalid_argument, "the model takes {} inputs, and a folder of pictures has one and a class",
       task.inputs.size());
}

std::unique_ptr<Dataset> pictures_of(const SourceRequest& r, const fs::path& path, bool augment,
                                     const std::vector<std::string>* known, Source& source) {
  const std::string where = "'" + path.string() + "'";
  const std::vector<std::string> folders = folders_in(path);
  std::vector<Sample> samples;
  source.classes = known != nullptr ? *known : folders;
  const bool integers = r.task.label_input().dtype == DataType::int64 || r.task.label_input().dtype == DataType::int32;
  if (!integers) {
    fail(ErrorCode::invalid_argument, "a folder's pictures have classes, and the model's input '{}' takes {}",
         r.task.label_input().name, r.task.label_input().type);
  }
  check_class_count(r.task, source.classes, where);
  const Classes classes({}, &source.classes);
  for (const std::string& folder : folders) {
    const std::int64_t label = classes.number_of(folder);
    const std::vector<fs::path> files = pictures_in(path / folder);
    if (files.empty()) source.notes.push_back(fmt::format("the folder '{}' has no pictures", (path / folder).string()));
    for (const fs::path& file : files) samples.push_back({file, label});
  }
  if (samples.empty()) {
    fail(ErrorCode::invalid_argument,
         "{} has no pictures in folders; put those of each class into a folder with the class's name", where);
  }
  SourceRequest request = r;
  request.augment = augment;
  auto data = std::make_unique<PictureData>(request, std::move(samples), picture_input(r.task));
  return data;
}

}  // namespace

Source open_pictures(const SourceRequest& r) {
  Source source;
  fs::path train = r.path, eval;
  std::error_code ignored;
  if (fs::is_directory(r.path / "train", ignored)) {
    for (const char* name : {"val", "valid", "validation", "test"}) {
      if (eval.empty() && fs::is_directory(r.path / name, ignored)) eval = r.path / name;
    }
    if (!eval.empty()) train = r.path / "train";
  }
  source.data = pictures_of(r, train, r.augment, r.known, source);
  source.kind = fmt::format("{} pictures of {} classes", source.data->size(), source.classes.size());
  if (!eval.empty()) {
    Source other;
    source.eval = pictures_of(r, eval, false, &source.classes, other);
  }
  return source;
}

}  // namespace sdx::train::loop
