#include <algorithm>
#include <cstring>
#include <string>

#include "base/checked.h"
#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/utf8.h"
#include "tensor/npy.h"
#include "tensor/types.h"

namespace sdx {
namespace {

std::string header_text(const std::string& descr, const Shape& shape) {
  std::string tuple = "(";
  for (const std::int64_t extent : shape) tuple += std::to_string(extent) + ", ";
  if (shape.size() > 1) tuple.resize(tuple.size() - 2);
  if (shape.size() == 1) tuple.pop_back();
  std::string dict = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + tuple + "), }";
  const std::size_t total = (10 + dict.size() + 1 + 63) / 64 * 64;
  dict.append(total - 10 - dict.size() - 1, ' ');
  dict += '\n';
  if (dict.size() > 0xFFFF)
    fail(ErrorCode::invalid_argument, "a tensor of {} dimensions cannot be written as .npy", shape.size());
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(dict.size() & 0xFF);
  out += static_cast<char>(dict.size() >> 8);
  return out + dict;
}

// Code points in `text`, or -1 where it is not UTF-8.
std::int64_t code_points(std::string_view text) {
  std::int64_t count = 0;
  for (std::size_t at = 0, bytes = 0; at < text.size(); at += bytes, ++count) {
    bytes = decode_utf8(text, at).bytes;
    if (bytes == 0) return -1;
  }
  return count;
}

void encode_strings(const Tensor& tensor, NpyParts& out) {
  const auto strings = tensor.values<std::string>();
  bool utf8 = true;
  std::int64_t longest = 1;  // NumPy has no use for 'U0'
  std::int64_t longest_bytes = 1;
  for (const std::string& s : strings) {
    const std::int64_t points = utf8 ? code_points(s) : 0;
    utf8 = utf8 && points >= 0;
    longest = std::max(longest, points);
    longest_bytes = std::max(longest_bytes, static_cast<std::int64_t>(s.size()));
  }
  const std::int64_t item = utf8 ? longest * 4 : longest_bytes;
  const auto total = checked_mul(item, tensor.size());
  if (!total || *total > (std::int64_t{1} << 34)) {
    fail(ErrorCode::out_of_memory, "{} strings of up to {} bytes are too many for a .npy file, which pads all to the longest",
         tensor.size(), longest_bytes);
  }
  out.header = header_text((utf8 ? "<U" + std::to_string(longest) : "|S" + std::to_string(item)), tensor.shape());
  out.converted.assign(static_cast<std::size_t>(*total), '\0');
  char* to = out.converted.data();
  for (const std::string& s : strings) {
    if (utf8) {
      char* unit = to;
      for (std::size_t at = 0; at < s.size(); unit += 4) {
        const CodePoint code = decode_utf8(s, at);
        std::memcpy(unit, &code.value, 4);
        at += code.bytes;
      }
    } else {
      std::copy(s.begin(), s.end(), to);
    }
    to += item;
  }
  out.data = std::as_bytes(std::span<const char>(out.converted));
}

void encode_sub_byte(const Tensor& tensor, NpyParts& out) {
  const int bits = bit_width(tensor.dtype());
  const bool is_signed = tensor.dtype() == DataType::int4 || tensor.dtype() == DataType::int2;
  const bool is_float = tensor.dtype() == DataType::float4e2m1;
  out.header = header_text(is_float ? "|V1" : is_signed ? "|i1" : "|u1", tensor.shape());
  out.converted.resize(static_cast<std::size_t>(tensor.size()));
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const std::uint8_t raw = get_packed(tensor.data(), bits, i);
    out.converted[static_cast<std::size_t>(i)] = static_cast<char>(is_signed ? sign_extend(raw, bits) : raw);
  }
  out.data = std::as_bytes(std::span<const char>(out.converted));
}

std::string numpy_descr(DataType type) {
  const std::string size = std::to_string(bit_width(type) / 8);
  const char* order = bit_width(type) > 8 ? "<" : "|";
  if (type == DataType::boolean) return "|b1";
  if (type == DataType::complex64 || type == DataType::complex128) return order + ("c" + size);
  if (type == DataType::float16 || type == DataType::float32 || type == DataType::float64) return order + ("f" + size);
  if (!is_integer(type)) return order + ("V" + size);
  const bool is_unsigned = name(type).starts_with('u');
  return order + ((is_unsigned ? "u" : "i") + size);
}

}  // namespace

void encode_npy(const Tensor& tensor, NpyParts& out) {
  if (!tensor.defined()) fail(ErrorCode::invalid_argument, "an undefined tensor cannot be written as .npy");
  if (tensor.dtype() == DataType::string) return encode_strings(tensor, out);
  if (is_sub_byte(tensor.dtype())) return encode_sub_byte(tensor, out);
  out.header = header_text(numpy_descr(tensor.dtype()), tensor.shape());
  out.data = {static_cast<const std::byte*>(tensor.data()), tensor.bytes()};
}

std::string to_npy(const Tensor& tensor) {
  NpyParts parts;
  encode_npy(tensor, parts);
  std::string out = std::move(parts.header);
  out.append(reinterpret_cast<const char*>(parts.data.data()), parts.data.size());
  return out;
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) { write_file_atomically(path, to_npy(tensor)); }

}  // namespace sdx
