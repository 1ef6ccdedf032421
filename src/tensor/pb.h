#pragma once
// Tensors as ONNX serialises them: TensorProto, SparseTensorProto, SequenceProto, MapProto, OptionalProto (onnx.proto and
// onnx-data.proto, IR version 14).

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <sdx/tensor.hpp>

#include "base/tools_api.h"

namespace sdx {

// Bytes, and the owner that keeps them alive.
struct OwnedBytes {
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner;
};

// TensorProto.external_data, parsed. The "checksum" key is accepted and not compared.
struct ExternalReference {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
  std::string tensor;  // whose data they are; may be empty
};

// The source of external data.
class ExternalData {
 public:
  virtual ~ExternalData() = default;
  // Exactly `size` bytes at the reference. Throws Error(invalid_model | io).
  virtual OwnedBytes read(const ExternalReference& reference, std::size_t size) = 0;
};

// Facts about a message's surroundings that decoding needs.
struct PbSource {
  std::shared_ptr<const void> owner;  // of the message's bytes; null: data are copied, never viewed
  ExternalData* external = nullptr;   // null: external data are refused
  // Bytes that sparse tensors may still take once densified: a few bytes can declare any dense size.
  std::size_t dense_budget = std::size_t{256} << 20;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// Data of 64 KiB and more are viewed in place even where they are unaligned; smaller ones are copied when unaligned. Nothing
// is allocated before the data's size has been checked against the shape. Throws Error(invalid_model) naming the tensor.
NamedTensor decode_tensor(std::string_view message, PbSource& source);
// A sparse tensor as a dense one.
NamedTensor decode_sparse_tensor(std::string_view message, PbSource& source);

enum class PbKind { tensor, sequence, optional, map };

// A whole serialised value. Sequences and optionals may nest 16 deep.
SDX_TOOLS_API Value decode_value(std::string_view message, PbKind kind, PbSource& source);
// The same from a file, which is mapped. Throws Error(io | invalid_model) naming the file.
SDX_TOOLS_API Value read_value_pb(const std::filesystem::path& path, PbKind kind);

// The inverse. Tensors become raw_data (strings: string_data). `typed`: float32 becomes float_data, and integers of up to 32 bits
// and float16 become int32_data, where programs that look at a model's few numbers expect them.
std::string encode_tensor(const Tensor& tensor, std::string_view name, bool typed = false);
SDX_TOOLS_API std::string encode_value(const Value& value, PbKind kind, std::string_view name);
// The content of raw_data for a tensor that holds no strings: its bytes, 6-bit floats packed.
OwnedBytes raw_bytes(const Tensor& tensor);

}  // namespace sdx
