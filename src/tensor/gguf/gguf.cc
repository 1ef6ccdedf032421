#include "tensor/gguf/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace sdx {
namespace {

constexpr std::array<std::size_t, 13> kSizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
std::size_t size_of(GgufType type) { return kSizes[static_cast<std::size_t>(type)]; }

std::string_view name(GgufType type) {
  constexpr std::string_view names[] = {"uint8", "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
                                        "bool",  "string", "array",  "uint64", "int64",  "float64"};
  return names[static_cast<std::size_t>(type)];
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = (value << 8) | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::int64_t sign_extended(std::uint64_t value, std::size_t bytes) {
  const int shift = 64 - 8 * static_cast<int>(bytes);
  return static_cast<std::int64_t>(value << shift) >> shift;
}

}  // namespace

GgufFile GgufFile::open(const std::filesystem::path& path) {
  auto file = MappedFile::open(path);
  try {
    GgufFile out(file->bytes());
    file->check_unchanged();
    out.file_ = std::move(file);
    return out;
  } catch (Error& e) {
    throw e.add_context("in " + path.string());
  }
}

GgufFile::GgufFile(std::span<const std::byte> bytes) : data_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {
  if (take(4, "the magic number") != "GGUF") fail(ErrorCode::invalid_model, "not a GGUF file: it does not begin with 'GGUF'");
  const std::uint64_t version = take_whole(4, "the version");
  if (version != 2 && version != 3) {
    const bool swapped = version == 0x02000000 || version == 0x03000000;
    fail(ErrorCode::invalid_model, "GGUF version {}{}; expected 2 or 3, little-endian", version, swapped ? " (big-endian)" : "");
  }
  tensors_ = take_whole(8, "the number of tensors");
  const std::uint64_t count = take_whole(8, "the number of values");
  // The shortest value has a key's length, a type and one byte.
  if (count > (data_.size() - at_) / 13) {
    fail(ErrorCode::invalid_model, "the GGUF header declares {} values, which {} bytes cannot hold", count, data_.size() - at_);
  }
  values_.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) take_value(values_.emplace_back());
}

std::string_view GgufFile::take(std::uint64_t size, std::string_view what) {
  if (size > data_.size() - at_) {
    fail(ErrorCode::invalid_model, "the GGUF file ends within {}: at byte {} of {}, {} more are needed", what, at_, data_.size(),
         size);
  }
  const std::string_view taken = data_.substr(at_, size);
  at_ += size;
  return taken;
}

std::uint64_t GgufFile::take_whole(std::size_t size, std::string_view what) { return little_endian(take(size, what)); }

std::string_view GgufFile::take_text(std::string_view what) {
  const std::uint64_t size = take_whole(8, what);
  return take(size, what);
}

GgufType GgufFile::take_type(std::string_view what) {
  const std::uint64_t type = take_whole(4, what);
  if (type >= kSizes.size()) fail(ErrorCode::invalid_model, "the GGUF value '{}' has the unknown type {}", what, type);
  return static_cast<GgufType>(type);
}

void GgufFile::take_value(GgufValue& value) {
  value.key = take_text("a key");
  value.type = take_type(value.key);
  if (value.type == GgufType::array) {
    value.element = take_type(value.key);
    if (value.element == GgufType::array)
      fail(ErrorCode::not_implemented, "the GGUF value '{}' is an array of arrays", value.key);
    value.count = take_whole(8, value.key);
  }
  value.begin = at_;
  skip(value.type == GgufType::array ? value.element : value.type, value.count, value.key);
  value.end = at_;
}

void GgufFile::skip(GgufType type, std::uint64_t count, std::string_view key) {
  if (type != GgufType::string) {
    if (count > (data_.size() - at_) / size_of(type)) {
      fail(ErrorCode::invalid_model, "the GGUF value '{}' declares {} elements, which {} bytes cannot hold", key, count,
           data_.size() - at_);
    }
    at_ += count * size_of(type);
    return;
  }
  for (std::uint64_t i = 0; i < count; ++i) take_text(key);
}

const GgufValue* GgufFile::find(std::string_view key) const noexcept {
  const auto found = std::find_if(values_.begin(), values_.end(), [&](const GgufValue& v) { return v.key == key; });
  return found == values_.end() ? nullptr : &*found;
}

std::optional<std::string_view> GgufFile::text(std::string_view key) const {
  const GgufValue* v = find(key);
  if (v == nullptr) return std::nullopt;
  if (v->type != GgufType::string)
    fail(ErrorCode::invalid_model, "the GGUF value '{}' is a {}; expected a string", key, name(v->type));
  return data_.substr(v->begin + 8, v->end - v->begin - 8);
}

double GgufFile::number_at(GgufType type, std::size_t at) const {
  const std::uint64_t bits = little_endian(data_.substr(at, size_of(type)));
  switch (type) {
    case GgufType::f32: return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case GgufType::f64: return std::bit_cast<double>(bits);
    case GgufType::i8:
    case GgufType::i16:
    case GgufType::i32:
    case GgufType::i64: return static_cast<double>(sign_extended(bits, size_of(type)));
    default: return static_cast<double>(bits);
  }
}

std::optional<double> GgufFile::number(std::string_view key) const {
  const GgufValue* v = find(key);
  if (v == nullptr) return std::nullopt;
  if (v->type == GgufType::string || v->type == GgufType::array) {
    fail(ErrorCode::invalid_model, "the GGUF value '{}' is a {}; expected a number", key, name(v->type));
  }
  return number_at(v->type, v->begin);
}

std::optional<std::uint64_t> GgufFile::whole(std::string_view key) const {
  const auto value = number(key);
  if (!value) return std::nullopt;
  if (!(*value >= 0 && *value < 9e15) || std::floor(*value) != *value) {
    fail(ErrorCode::invalid_model, "the GGUF value '{}' is {}; expected a whole number of at least 0", key, *value);
  }
  return static_cast<std::uint64_t>(*value);
}

std::optional<bool> GgufFile::truth(std::string_view key) const {
  const auto value = number(key);
  if (!value) return std::nullopt;
  return *value != 0;
}

const GgufValue* GgufFile::array(std::string_view key) const {
  const GgufValue* v = find(key);
  if (v != nullptr && v->type != GgufType::array)
    fail(ErrorCode::invalid_model, "the GGUF value '{}' is a {}; expected an array", key, name(v->type));
  return v;
}

std::optional<std::vector<std::string_view>> GgufFile::texts(std::string_view key) const {
  const GgufValue* v = array(key);
  if (v == nullptr) return std::nullopt;
  if (v->element != GgufType::string)
    fail(ErrorCode::invalid_model, "the GGUF value '{}' has elements of type {}; expected string", key, name(v->element));
  std::vector<std::string_view> out;
  out.reserve(v->count);
  for (std::size_t at = v->begin; at < v->end;) {
    const std::uint64_t size = little_endian(data_.substr(at, 8));
    out.push_back(data_.substr(at + 8, size));
    at += 8 + size;
  }
  return out;
}

std::optional<std::vector<double>> GgufFile::numbers(std::string_view key) const {
  const GgufValue* v = array(key);
  if (v == nullptr) return std::nullopt;
  if (v->element == GgufType::string)
    fail(ErrorCode::invalid_model, "the GGUF value '{}' has elements of type string; expected numbers", key);
  std::vector<double> out;
  out.reserve(v->count);
  for (std::uint64_t i = 0; i < v->count; ++i) out.push_back(number_at(v->element, v->begin + i * size_of(v->element)));
  return out;
}

std::optional<std::string_view> GgufFile::bytes(std::string_view key) const {
  const GgufValue* v = array(key);
  if (v == nullptr) return std::nullopt;
  if (size_of(v->element) != 1)
    fail(ErrorCode::invalid_model, "the GGUF value '{}' has elements of type {}; expected bytes", key, name(v->element));
  return data_.substr(v->begin, v->end - v->begin);
}

}  // namespace sdx
