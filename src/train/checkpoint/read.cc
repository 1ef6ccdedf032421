// Reads checkpoints from untrusted bytes.

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/utf8.h"
#include "checkpoint_generated.h"
#include "train/checkpoint/format.h"

namespace sdx::train {
namespace {

constexpr std::int32_t kVersions[] = {1, 2};  // 2 differs by tensors in a second file
constexpr std::size_t kMostExtents = 64;      // of a tensor; also bounds what one shared vector of extents can cost
constexpr std::int64_t kMostElements = std::int64_t{1} << 55;  // whose bits can be counted
constexpr std::size_t kAligned = 8;

template <class... Args>
[[noreturn]] void damaged(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorCode::invalid_model, "not a checkpoint that can be read: {}", fmt::vformat(format, fmt::make_format_args(args...)));
}

// The whole buffer is checked before any of it is used.
const file::Checkpoint& verified(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE) damaged("it has {} bytes; the format allows 2 GiB", bytes.size());
  if (bytes.size() < 2 * sizeof(flatbuffers::uoffset_t) || !file::CheckpointBufferHasIdentifier(data)) {
    damaged("the identifier \"{}\" is not in bytes 4 to 7", file::CheckpointIdentifier());
  }
  flatbuffers::Verifier verifier(data, bytes.size());
  if (!file::VerifyCheckpointBuffer(verifier)) damaged("an offset leads out of its {} bytes; it may be truncated", bytes.size());
  const file::Checkpoint& root = *file::GetCheckpoint(data);
  if (std::find(std::begin(kVersions), std::end(kVersions), root.version()) == std::end(kVersions)) {
    damaged("version {} of the format; versions {} to {} can be read", root.version(), kVersions[0], kVersions[1]);
  }
  return root;
}

// Offsets are read as whole words, which processors need to be aligned.
class Aligned {
 public:
  explicit Aligned(std::span<const std::byte> bytes) : bytes_(bytes) {
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kAligned == 0) return;
    copy_ = std::make_unique<std::uint64_t[]>(bytes.size() / kAligned + 1);
    std::memcpy(copy_.get(), bytes.data(), bytes.size());
    bytes_ = {reinterpret_cast<const std::byte*>(copy_.get()), bytes.size()};
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
  std::unique_ptr<std::uint64_t[]> copy_;
};

class Reader {
 public:
  // Without `values` tensors have types and shapes alone.
  Reader(const file::Checkpoint& root, std::span<const std::byte> bytes, std::span<const std::byte> external, bool values)
      : root_(root),
        external_(external),
        text_left_(bytes.size()),
        content_left_(bytes.size() + external.size()),
        values_(values) {}

  CheckpointState read() {
    CheckpointState state;
    if (const auto* p = root_.parameters()) read_parameters(*p, state);
    if (const auto* groups = root_.optimizers()) {
      for (const file::OptimizerGroup* group : *groups) read_group(*group, state);
    }
    if (const auto* p = root_.properties()) read_properties(*p, state);
    return state;
  }
  // The part of `external` with the tensors that were read.
  const std::optional<Extent>& placed() const { return placed_; }

 private:
  // Several places of a file may refer to the same bytes: a small file could so ask for any amount of memory, and of time. All
  // texts together, and all tensors, may take as much as there are bytes.
  static void take(std::uint64_t& left, std::uint64_t bytes, const char* what) {
    if (bytes > left) damaged("its {} overlap", what);
    left -= bytes;
  }

  std::string text(const flatbuffers::String* s, const char* what) {
    if (s == nullptr) damaged("{} is missing", what);
    take(text_left_, s->size(), "texts");
    const std::string_view view = s->string_view();
    if (!is_utf8(view)) damaged("{} is not UTF-8", what);
    return std::string(view);
  }

  static Shape shape_of(const file::Tensor& t, const std::string& name) {
    Shape shape;
    std::int64_t count = 1;
    if (t.extents() == nullptr) return shape;
    if (t.extents()->size() > kMostExtents) damaged("tensor '{}' has {} extents", name, t.extents()->size());
    shape.resize(t.extents()->size());
    // They may lie anywhere: the verifier looks at the alignment of single fields alone.
    if (!shape.empty()) std::memcpy(shape.data(), t.extents()->Data(), shape.size() * sizeof(std::int64_t));
    for (const std::int64_t extent : shape) {
      if (extent < 0) damaged("an extent of tensor '{}' is {}", name, extent);
    }
    for (const std::int64_t extent : shape) {
      const auto product = checked_mul(count, std::max<std::int64_t>(extent, 1));
      if (!product || *product > kMostElements) damaged("tensor '{}' has more elements than can be counted", name);
      count = *product;
    }
    return shape;
  }

  std::span<const std::byte> content_of(const file::Tensor& t, const std::string& name, std::uint64_t expected) {
    if (t.place() >= 0) {
      const auto place = static_cast<std::uint64_t>(t.place());
      if (place > external_.size() || expected > external_.size() - place) {
        damaged("tensor '{}' is said to be in bytes {} to {} of the file with external data, which has {}", name, place,
                place + expected, external_.size());
      }
      if (!placed_) placed_ = Extent{place, place};
      placed_ = Extent{std::min(placed_->begin, place), std::max(placed_->end, place + expected)};
      return external_.subspan(place, expected);
    }
    const std::size_t size = t.content() == nullptr ? 0 : t.content()->size();
    if (size != expected) damaged("tensor '{}' has {} bytes; its type and shape need {}", name, size, expected);
    if (size == 0) return {};
    return std::as_bytes(std::span(t.content()->data(), size));
  }

  Tensor tensor(const file::Tensor& t, const std::string& name, bool nominal) {
    const auto type = t.type() > 0 && t.type() < kDataTypeCount ? static_cast<DataType>(t.type()) : DataType::undefined;
    if (bit_width(type) == 0) damaged("tensor '{}' has element type {}, which parameters cannot have", name, t.type());
    Shape shape = shape_of(t, name);
    if (nominal) return Tensor::view(nullptr, type, std::move(shape));
    const std::uint64_t expected = byte_size(type, element_count(shape));
    const std::span<const std::byte> from = content_of(t, name, expected);
    take(content_left_, expected, "tensors");
    if (!values_) return Tensor::view(nullptr, type, std::move(shape));
    Tensor out(type, std::move(shape));
    if (from.empty()) return out;
    auto* to = static_cast<std::uint8_t*>(out.mutable_data());
    std::memcpy(to, from.data(), from.size());
    if (type == DataType::boolean) {  // objects of type bool hold 0 or 1
      for (std::size_t i = 0; i < from.size(); ++i) to[i] = to[i] != 0 ? 1 : 0;
    }
    return out;
  }

  void read_parameters(const file::Parameters& p, CheckpointState& state) {
    state.nominal = p.nominal();
    std::map<std::string, int> seen;
    const auto each = [&](const flatbuffers::Vector<flatbuffers::Offset<file::Tensor>>* tensors, bool trained) {
      if (tensors == nullptr) return;
      for (const file::Tensor* t : *tensors) {
        const std::string name = text(t->name(), "the name of a parameter");
        if (seen[name]++ > 0) damaged("two parameters are called '{}'", name);
        state.parameters.push_back({name, tensor(*t, name, p.nominal()), trained});
      }
    };
    each(p.trained(), true);
    each(p.frozen(), false);
  }

  void read_group(const file::OptimizerGroup& group, CheckpointState& state) {
    const std::string name = text(group.name(), "the name of an optimizer's group");
    const auto [at, made] = state.optimizers.try_emplace(name);
    if (!made) damaged("two optimizer groups are called '{}'", name);
    if (group.step() < 0) damaged("optimizer group '{}' has made {} steps", name, group.step());
    at->second.step = group.step();
    at->second.initial_learning_rate = group.initial_learning_rate();
    if (group.moments() == nullptr) return;
    for (const file::Moments* moments : *group.moments()) {
      const std::string parameter = text(moments->parameter(), "the name of a parameter in an optimizer's group");
      const auto [to, first] = at->second.moments.try_emplace(parameter);
      if (!first) damaged("optimizer group '{}' has parameter '{}' twice", name, parameter);
      if (moments->tensors() == nullptr) continue;
      for (const file::Tensor* t : *moments->tensors()) {
        const std::string moment = text(t->name(), "the name of a moment");
        if (to->second.contains(moment)) damaged("parameter '{}' has moment '{}' twice", parameter, moment);
        to->second.emplace(moment, tensor(*t, moment + " of " + parameter, false));
      }
    }
  }

  void read_properties(const file::Properties& p, CheckpointState& state) {
    const auto add = [&](const flatbuffers::String* key, const Property& value) {
      const std::string name = text(key, "the name of a property");
      if (!state.properties.try_emplace(name, value).second) damaged("two properties are called '{}'", name);
    };
    if (p.wholes() != nullptr) {
      for (const file::Whole* v : *p.wholes()) add(v->name(), v->value());
    }
    if (p.reals() != nullptr) {
      for (const file::Real* v : *p.reals()) add(v->name(), v->value());
    }
    if (p.texts() != nullptr) {
      for (const file::Text* v : *p.texts()) add(v->name(), text(v->value(), "the value of a property"));
    }
  }

  const file::Checkpoint& root_;
  std::span<const std::byte> external_;
  std::uint64_t text_left_, content_left_;
  bool values_;
  std::optional<Extent> placed_;
};

bool is_external(const file::Checkpoint& root) { return root.parameters() != nullptr && root.parameters()->external(); }

}  // namespace

std::filesystem::path external_path(const std::filesystem::path& checkpoint) {
  std::filesystem::path path = checkpoint;
  path += ".data";
  return path;
}

bool has_external_data(std::span<const std::byte> bytes) {
  const Aligned aligned(bytes);
  return is_external(verified(aligned.bytes()));
}

CheckpointState decode_checkpoint(std::span<const std::byte> bytes, std::span<const std::byte> external) {
  const Aligned aligned(bytes);
  const file::Checkpoint& root = verified(aligned.bytes());
  if (!is_external(root)) external = {};
  return Reader(root, aligned.bytes(), external, true).read();
}

std::optional<Extent> external_extent(std::span<const std::byte> bytes, std::span<const std::byte> external) {
  try {
    const Aligned aligned(bytes);
    const file::Checkpoint& root = verified(aligned.bytes());
    if (!is_external(root)) return std::nullopt;
    Reader reader(root, aligned.bytes(), external, false);
    (void)reader.read();
    return reader.placed();
  } catch (const Error&) {
    return std::nullopt;
  }
}

CheckpointState CheckpointState::load(std::span<const std::byte> bytes) {
  if (has_external_data(bytes)) {
    fail(ErrorCode::invalid_model, "this checkpoint has tensors in a second file; load it by its path");
  }
  return decode_checkpoint(bytes);
}

CheckpointState CheckpointState::load(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  try {
    if (!has_external_data(file->bytes())) return decode_checkpoint(file->bytes());
    const auto external = MappedFile::open(external_path(path));
    return decode_checkpoint(file->bytes(), external->bytes());
  } catch (Error& e) {
    if (e.code() == ErrorCode::invalid_model) e.add_context("in checkpoint '" + path.string() + "'");
    throw;
  }
}

}  // namespace sdx::train
