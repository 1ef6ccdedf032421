#include "serve/models/datatypes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace sdx::serve {
namespace {

static_assert(std::endian::native == std::endian::little, "the protocol's bytes are taken as they are");

constexpr std::array<std::pair<DataType, std::string_view>, 14> kNames{{{DataType::boolean, "BOOL"},
                                                                        {DataType::uint8, "UINT8"},
                                                                        {DataType::uint16, "UINT16"},
                                                                        {DataType::uint32, "UINT32"},
                                                                        {DataType::uint64, "UINT64"},
                                                                        {DataType::int8, "INT8"},
                                                                        {DataType::int16, "INT16"},
                                                                        {DataType::int32, "INT32"},
                                                                        {DataType::int64, "INT64"},
                                                                        {DataType::float16, "FP16"},
                                                                        {DataType::float32, "FP32"},
                                                                        {DataType::float64, "FP64"},
                                                                        {DataType::string, "BYTES"},
                                                                        {DataType::bfloat16, "BF16"}}};

constexpr std::size_t kLength = 4;  // bytes before each string

Tensor strings_of(std::string_view bytes, Shape shape, std::string_view what) {
  const std::int64_t count = element_count(shape);
  if (static_cast<std::uint64_t>(count) > bytes.size() / kLength) {
    fail(ErrorCode::invalid_argument, "{}: {} bytes cannot hold {} strings, each preceded by its length in 4 bytes", what,
         bytes.size(), count);
  }
  Tensor out(DataType::string, std::move(shape));
  for (std::string& s : out.mutable_values<std::string>()) {
    std::uint32_t length = 0;
    if (bytes.size() >= kLength) std::memcpy(&length, bytes.data(), kLength);
    if (bytes.size() < kLength || length > bytes.size() - kLength) {
      fail(ErrorCode::invalid_argument, "{}: a string extends beyond the end of the data", what);
    }
    s.assign(bytes.substr(kLength, length));
    bytes.remove_prefix(kLength + length);
  }
  if (!bytes.empty()) fail(ErrorCode::invalid_argument, "{}: {} bytes follow the last string", what, bytes.size());
  return out;
}

}  // namespace

std::string_view protocol_name(DataType type) noexcept {
  const auto at = std::find_if(kNames.begin(), kNames.end(), [&](const auto& item) { return item.first == type; });
  return at == kNames.end() ? std::string_view() : at->second;
}

DataType parse_protocol_type(std::string_view text) noexcept {
  const auto at = std::find_if(kNames.begin(), kNames.end(), [&](const auto& item) { return item.second == text; });
  return at == kNames.end() ? DataType::undefined : at->first;
}

std::string config_type_name(DataType type) {
  if (type == DataType::string) return "TYPE_STRING";
  const std::string_view name = protocol_name(type);
  return "TYPE_" + std::string(name.empty() ? "INVALID" : name);
}

DataType parse_config_type(std::string_view text) noexcept {
  if (text == "TYPE_STRING") return DataType::string;
  if (!text.starts_with("TYPE_") || text == "TYPE_BYTES") return DataType::undefined;
  return parse_protocol_type(text.substr(5));
}

Tensor tensor_of_bytes(std::string_view bytes, DataType type, Shape shape, const std::shared_ptr<const void>& owner,
                       std::string_view what) {
  if (type == DataType::string) return strings_of(bytes, std::move(shape), what);
  const std::int64_t count = element_count(shape);
  const auto element = static_cast<std::uint64_t>(bit_width(type)) / 8;
  if (static_cast<std::uint64_t>(count) > bytes.size() || static_cast<std::uint64_t>(count) * element != bytes.size()) {
    fail(ErrorCode::invalid_argument, "{}: {}{} takes {} elements of {} bytes, received {} bytes", what, name(type),
         to_string(shape), count, element, bytes.size());
  }
  if (type == DataType::boolean && std::any_of(bytes.begin(), bytes.end(), [](char c) { return c != 0 && c != 1; })) {
    fail(ErrorCode::invalid_argument, "{}: BOOL takes bytes 0 and 1", what);
  }
  if (owner) return Tensor::view(bytes.data(), type, std::move(shape), owner);
  Tensor out(type, std::move(shape));
  if (!bytes.empty()) std::memcpy(out.mutable_data(), bytes.data(), bytes.size());
  return out;
}

void append_bytes(std::string& to, const Tensor& tensor) {
  if (tensor.dtype() != DataType::string) {
    if (tensor.bytes() > 0) to.append(static_cast<const char*>(tensor.data()), tensor.bytes());
    return;
  }
  for (const std::string& s : tensor.values<std::string>()) {
    const auto length = static_cast<std::uint32_t>(s.size());
    to.append(reinterpret_cast<const char*>(&length), kLength);
    to += s;
  }
}

std::size_t bytes_of(const Tensor& tensor) {
  if (tensor.dtype() != DataType::string) return tensor.bytes();
  std::size_t bytes = 0;
  for (const std::string& s : tensor.values<std::string>()) bytes += kLength + s.size();
  return bytes;
}

}  // namespace sdx::serve
