#pragma once
// Element types as the Open Inference Protocol names them, and tensors as its binary form has them: little-endian, row by row;
// strings each behind their length in four bytes.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <sdx/tensor.hpp>

namespace sdx::serve {

// "FP32"; "" for types that the protocol does not have.
std::string_view protocol_name(DataType type) noexcept;
// undefined where the text names none.
DataType parse_protocol_type(std::string_view text) noexcept;
// "TYPE_FP32", as model configurations name it; "TYPE_INVALID".
std::string config_type_name(DataType type);
DataType parse_config_type(std::string_view text) noexcept;

// A view of `bytes` where the type allows it, kept alive by `owner`. `what` is for messages: "input 'x'". Throws
// Error(invalid_argument) where the bytes are not what type and shape need.
Tensor tensor_of_bytes(std::string_view bytes, DataType type, Shape shape, const std::shared_ptr<const void>& owner,
                       std::string_view what);

// The same bytes that tensor_of_bytes() takes.
void append_bytes(std::string& to, const Tensor& tensor);
std::size_t bytes_of(const Tensor& tensor);

}  // namespace sdx::serve
