#include "tensor/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/new_file.h"

namespace sdx {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostHeader = 100'000'000;  // what the format's own implementation takes
constexpr std::size_t kPrefix = sizeof(std::uint64_t);

constexpr std::array kTypes{std::pair("BOOL", DataType::boolean),
                            std::pair("U8", DataType::uint8),
                            std::pair("I8", DataType::int8),
                            std::pair("U16", DataType::uint16),
                            std::pair("I16", DataType::int16),
                            std::pair("F16", DataType::float16),
                            std::pair("BF16", DataType::bfloat16),
                            std::pair("U32", DataType::uint32),
                            std::pair("I32", DataType::int32),
                            std::pair("F32", DataType::float32),
                            std::pair("U64", DataType::uint64),
                            std::pair("I64", DataType::int64),
                            std::pair("F64", DataType::float64),
                            std::pair("C64", DataType::complex64),
                            std::pair("F8_E4M3", DataType::float8e4m3fn),
                            std::pair("F8_E5M2", DataType::float8e5m2),
                            std::pair("F8_E8M0", DataType::float8e8m0)};

[[noreturn]] void malformed(std::string_view why) { fail(ErrorCode::invalid_argument, "not a safetensors file: {}", why); }

DataType type_of(const std::string& name, const std::string& word) {
  const auto at = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& t) { return word == t.first; });
  if (at == kTypes.end())
    fail(ErrorCode::invalid_argument, "tensor '{}' has the element type '{}', which is not supported", name, word);
  return at->second;
}

std::uint64_t natural(const json& value, const std::string& name, const char* what) {
  if (!value.is_number_unsigned()) malformed(fmt::format("{} of tensor '{}' is not a whole number", what, name));
  return value.get<std::uint64_t>();
}

struct Entry {
  std::string name;
  DataType dtype = DataType::undefined;
  Shape shape;
  std::uint64_t begin = 0, end = 0;
};

Entry entry_of(const std::string& name, const json& value) {
  if (!value.is_object()) malformed(fmt::format("'{}' is not an object", name));
  const json dtype = value.value("dtype", json()), shape = value.value("shape", json()),
             offsets = value.value("data_offsets", json());
  if (!dtype.is_string() || !shape.is_array() || !offsets.is_array() || offsets.size() != 2) {
    malformed(fmt::format("tensor '{}' needs dtype, shape and two data_offsets", name));
  }
  Entry e{name,
          type_of(name, dtype.get<std::string>()),
          {},
          natural(offsets[0], name, "an offset"),
          natural(offsets[1], name, "an offset")};
  std::int64_t count = 1;
  for (const json& extent : shape) {
    const std::uint64_t n = natural(extent, name, "an extent");
    const auto product = n > INT64_MAX ? std::nullopt : checked_mul(count, static_cast<std::int64_t>(n));
    if (!product) malformed(fmt::format("tensor '{}' has more elements than can be counted", name));
    e.shape.push_back(static_cast<std::int64_t>(n));
    count = *product;
  }
  const auto bytes = checked_mul(count, static_cast<std::int64_t>(byte_size(e.dtype, 1)));
  if (e.end < e.begin || !bytes || e.end - e.begin != static_cast<std::uint64_t>(*bytes)) {
    malformed(fmt::format("tensor '{}' has offsets {} to {}, which do not match its shape", name, e.begin, e.end));
  }
  return e;
}

std::vector<Entry> entries_of(const json& header, std::uint64_t data_bytes, std::map<std::string, std::string>& metadata) {
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name != "__metadata__") {
      entries.push_back(entry_of(name, value));
      continue;
    }
    if (value.is_null()) continue;  // MLX writes it so where there is nothing to say
    if (!value.is_object()) malformed("'__metadata__' is not an object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) malformed("'__metadata__' has a value that is not text");
      metadata[key] = text.get<std::string>();
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::uint64_t reached = 0;
  for (const Entry& e : entries) {
    if (e.begin != reached)
      malformed(
          fmt::format("tensor '{}' begins at {} where {} is expected: tensors overlap or leave a gap", e.name, e.begin, reached));
    reached = e.end;
  }
  if (reached != data_bytes)
    malformed(fmt::format("the header describes {} bytes of data, the file has {}", reached, data_bytes));
  return entries;
}

}  // namespace

SafeTensors parse_safetensors(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner) {
  std::uint64_t length = 0;
  if (bytes.size() < kPrefix) malformed("shorter than 8 bytes");
  std::memcpy(&length, bytes.data(), kPrefix);
  if (length > kMostHeader || length > bytes.size() - kPrefix) malformed(fmt::format("a header of {} bytes", length));
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + kPrefix;
  const json header = json::parse(text, text + length, nullptr, false);
  if (!header.is_object()) malformed("the header is not a JSON object");
  SafeTensors out;
  const std::byte* data = bytes.data() + kPrefix + length;
  for (Entry& e : entries_of(header, bytes.size() - kPrefix - length, out.metadata)) {
    out.tensors.emplace(std::move(e.name), Tensor::view(data + e.begin, e.dtype, std::move(e.shape), owner));
  }
  return out;
}

SafeTensors read_safetensors(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  try {
    SafeTensors out = parse_safetensors(file->bytes(), file);
    file->check_unchanged();
    return out;
  } catch (const Error& e) {
    fail(e.code(), "{}: {}", path.string(), e.message());
  }
}

void write_safetensors(const std::filesystem::path& path, const std::vector<std::pair<std::string, Tensor>>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto at = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& t) { return tensor.dtype() == t.second; });
    if (at == kTypes.end())
      fail(ErrorCode::invalid_argument, "safetensors files cannot hold {} ('{}')", tensor.type_string(), name);
    if (header.contains(name)) fail(ErrorCode::invalid_argument, "two tensors are called '{}'", name);
    header[name] = {{"dtype", at->first}, {"shape", tensor.shape()}, {"data_offsets", {offset, offset + tensor.bytes()}}};
    offset += tensor.bytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data begin at a multiple of 8
  const std::uint64_t length = text.size();
  NewFile file(path);
  file.append(std::as_bytes(std::span(&length, 1)));
  file.append(std::as_bytes(std::span(text)));
  for (const auto& [name, tensor] : tensors) file.append({static_cast<const std::byte*>(tensor.data()), tensor.bytes()});
  file.publish();
}

}  // namespace sdx
