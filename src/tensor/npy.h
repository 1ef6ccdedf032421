#pragma once
// NumPy's .npy files (format versions 1.0, 2.0 and 3.0; numpy.lib.format).

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include <sdx/tensor.hpp>

#include "base/tools_api.h"

namespace sdx {

// Reads one array from the bytes of a .npy file. Little-endian, C-ordered numbers become a view that keeps `owner` alive
// (with a null owner the caller keeps `bytes` alive); everything else is converted into an owning tensor: other byte
// order, Fortran order, text ('U': to UTF-8, 'S': as it is, trailing NULs dropped as NumPy does), bools other than 0 and 1.
// Unnamed bytes ('V1', 'V2', 'f1': how the ml_dtypes package saves its types) are read as `opaque` where the size fits;
// without it two bytes are bfloat16 and one byte is uint8. 4- and 2-bit types are stored one element a byte there, and
// are packed. Throws Error(invalid_argument) for anything malformed, truncated or pickled.
Tensor parse_npy(std::span<const std::byte> bytes, std::shared_ptr<const void> owner = nullptr,
                 DataType opaque = DataType::undefined);

// The same over a mapped file; errors name it. Throws Error(io) when it cannot be read.
SDX_TOOLS_API Tensor read_npy(const std::filesystem::path& path, DataType opaque = DataType::undefined);

// Header and data of a .npy file; the header's length is a multiple of 64. Types NumPy lacks: bfloat16 as '<V2', 8-bit and
// smaller floats as '|V1', int4/int2 as '|i1', uint4/uint2 as '|u1' (one element a byte). Strings are written as '<U…', or
// as '|S…' where one is not valid UTF-8.
struct NpyParts {
  std::string header;
  std::string converted;            // the data, where it had to be converted
  std::span<const std::byte> data;  // refers to `converted` or to the tensor
};
void encode_npy(const Tensor& tensor, NpyParts& out);
std::string to_npy(const Tensor& tensor);
SDX_TOOLS_API void write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace sdx
