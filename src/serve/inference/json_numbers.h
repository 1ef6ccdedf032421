#pragma once
// Requests' JSON without building a document of their numbers: arrays under "data" are set aside, the rest is small and parsed
// as usual, and the arrays are read straight into tensors. Numbers are written by std::to_chars: the shortest text that reads
// back as the same number.

#include <string>
#include <string_view>
#include <vector>

#include <sdx/tensor.hpp>

namespace sdx::serve {

// A JSON object without the values of the members `set_aside` of objects in the array `list`: {"inputs": [{"data": [...]}]}.
struct Skeleton {
  std::string text;                      // such a value is its number in `values`
  std::vector<std::string_view> values;  // into the JSON
};
// Throws Error(invalid_argument) where brackets or quotes do not match.
Skeleton set_values_aside(std::string_view json, std::string_view list, std::string_view member);

// Reads an array, nested or flat, of as many values as the shape has elements. `what` is for messages. Throws
// Error(invalid_argument) for other JSON, numbers that the type does not hold, and types that JSON has no numbers for (FP16,
// BF16: binary data alone).
Tensor read_values(std::string_view json, DataType type, Shape shape, std::string_view what);

// A flat array. What JSON has no number for (NaN, infinities) becomes null. Throws Error(invalid_argument) for strings that are
// not UTF-8.
void append_values(std::string& to, const Tensor& tensor, std::string_view what);

}  // namespace sdx::serve
