#include "tensor/gguf/gguf_model.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "base/system/file.h"

static_assert(std::endian::native == std::endian::little, "numbers are read as they are stored in the file");

namespace sdx {
namespace {

constexpr std::size_t kMostAxes = 4;  // GGML_MAX_DIMS
constexpr std::uint64_t kMostParts = 1000;

// The descriptions of tensors behind the metadata.
class TensorReader {
 public:
  TensorReader(std::span<const std::byte> bytes, std::size_t at) : bytes_(bytes), at_(at) {}

  template <class... Args>
  [[noreturn]] static void bad(fmt::format_string<Args...> format, Args&&... args) {
    fail(ErrorCode::invalid_model, format, std::forward<Args>(args)...);
  }

  void check_count(std::uint64_t tensors) const {
    const std::size_t left = bytes_.size() - at_;
    // A name's length, a rank, a type and an offset.
    if (tensors > left / 24) bad("{} tensors cannot be in the {} bytes that follow", tensors, left);
  }

  // Its data are placed by place().
  StoredTensor tensor() {
    StoredTensor t;
    const auto size = number<std::uint64_t>("a tensor's name");
    need(size, "a tensor's name");
    t.name.assign(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
    at_ += size;
    const auto axes = number<std::uint32_t>("a tensor's rank");
    if (axes > kMostAxes) bad("tensor '{}' has {} axes; at most {} are possible", t.name, axes, kMostAxes);
    std::int64_t count = 1;
    for (std::uint32_t i = 0; i < axes; ++i) {
      const auto extent = number<std::uint64_t>("an extent");
      // An extent of 0 counts as 1, so that the product fits in any order.
      const auto product =
          extent >> 62 == 0 ? checked_mul(count, std::max<std::int64_t>(1, static_cast<std::int64_t>(extent))) : std::nullopt;
      if (!product) bad("tensor '{}' is too large: an extent of {}", t.name, extent);
      count = *product;
      t.shape.insert(t.shape.begin(), static_cast<std::int64_t>(extent));  // the file has the innermost first
    }
    t.type = number<std::uint32_t>("a tensor's type");
    t.offset = number<std::uint64_t>("a tensor's offset");
    return t;
  }

  // The tensor's bytes, with offsets counted from `base`, where data begin.
  void place(StoredTensor& t, std::uint64_t base, std::uint64_t alignment) const {
    if (t.offset % alignment != 0) {
      bad("tensor '{}' is at offset {}, which is not a multiple of the alignment {}", t.name, t.offset, alignment);
    }
    const std::uint64_t room = bytes_.size() > base ? bytes_.size() - base : 0;
    if (t.offset > room) bad("tensor '{}' is at offset {} of the data, which have {} bytes", t.name, t.offset, room);
    const std::uint64_t left = room - t.offset;
    t.offset += base;
    const GgmlFormat* format = find_ggml(t.type);
    if (format == nullptr) return;
    const std::int64_t elements = t.elements(), row = t.shape.empty() ? 1 : t.shape.back();
    if (row % format->block != 0) {
      bad("tensor '{}' has rows of {} elements, which do not divide into the {} of a {} block", t.name, row, format->block,
          ggml_type_name(t.type));
    }
    const auto size = checked_mul(elements / format->block, format->bytes);
    if (!size || static_cast<std::uint64_t>(*size) > left) {
      bad("tensor '{}' ({} elements of {}) needs more than the {} bytes after its offset: the file is truncated", t.name,
          elements, ggml_type_name(t.type), left);
    }
    t.data = bytes_.subspan(t.offset, static_cast<std::size_t>(*size));
  }

  std::size_t at() const { return at_; }

 private:
  void need(std::uint64_t size, std::string_view what) const {
    if (size > bytes_.size() - at_) {
      bad("{} bytes of {} are needed at offset {}, the file ends after {}", size, what, at_, bytes_.size());
    }
  }
  template <class T>
  T number(std::string_view what) {
    need(sizeof(T), what);
    T v;
    std::memcpy(&v, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return v;
  }

  std::span<const std::byte> bytes_;
  std::size_t at_;
};

std::uint64_t alignment_of(const GgufFile& file) {
  const std::uint64_t given = file.whole("general.alignment").value_or(32);
  if (given < 8 || given > (1 << 20) || given % 8 != 0) {
    fail(ErrorCode::invalid_model, "general.alignment must be a multiple of 8 up to 1048576, received {}", given);
  }
  return given;
}

}  // namespace

void GgufModel::add_part(const std::filesystem::path& path, std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                         const std::string& shown) {
  try {
    GgufFile file(bytes);
    const std::uint64_t alignment = alignment_of(file);
    TensorReader reader(bytes, file.tensors_at());
    reader.check_count(file.tensor_count());
    const std::size_t begin = tensors_.size();
    for (std::uint64_t i = 0; i < file.tensor_count(); ++i) {
      StoredTensor t = reader.tensor();
      t.file = files_.size();
      const std::string name = t.name;
      if (!add_tensor(std::move(t))) TensorReader::bad("tensor '{}' occurs twice", name);
    }
    const std::uint64_t base = (reader.at() + alignment - 1) / alignment * alignment;
    for (std::size_t i = begin; i < tensors_.size(); ++i) reader.place(tensors_[i], base, alignment);
    files_.push_back(std::move(file));
  } catch (Error& e) {
    throw e.add_context("in '" + shown + "'");
  }
  add_file(path, bytes, std::move(owner));
}

std::shared_ptr<const GgufModel> GgufModel::open(const std::filesystem::path& path) {
  auto model = std::make_shared<GgufModel>();
  const auto add = [&](const std::filesystem::path& part) {
    const auto mapped = MappedFile::open(part);
    model->add_part(part, mapped->bytes(), mapped, part.string());
    mapped->check_unchanged();
  };
  add(path);
  const std::uint64_t parts = model->metadata().whole("split.count").value_or(1);
  if (parts <= 1) return model;
  const auto fail_split = [&](const std::string& why) {
    fail(ErrorCode::invalid_model, "'{}' is part of a model that is split into {} files: {}", path.string(), parts, why);
  };
  if (parts > kMostParts) fail_split(fmt::format("at most {} are read", kMostParts));
  const std::string stem = path.stem().string(), end = path.extension().string(), tail = fmt::format("-00001-of-{:05}", parts);
  if (model->metadata().whole("split.no").value_or(0) != 0 || !stem.ends_with(tail)) {
    fail_split("open the first one, whose name ends in " + tail + end);
  }
  const std::string begin = stem.substr(0, stem.size() - tail.size());
  for (std::uint64_t i = 2; i <= parts; ++i)
    add(path.parent_path() / path_of(begin + fmt::format("-{:05}-of-{:05}", i, parts) + end));
  return model;
}

std::shared_ptr<const GgufModel> GgufModel::read(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                                 const std::string& shown) {
  auto model = std::make_shared<GgufModel>();
  model->add_part({}, bytes, std::move(owner), shown);
  return model;
}

}  // namespace sdx
