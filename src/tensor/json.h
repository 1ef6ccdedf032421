#pragma once
// Values as JSON text, the form of `sdx run -i/-f/-o` and of the HTTP server.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include <sdx/tensor.hpp>

#include "base/tools_api.h"

namespace sdx {

// The type and shape that the receiver expects, as far as they are known.
struct JsonHint {
  DataType dtype = DataType::undefined;  // undefined: float32 for numbers with a fraction, int64, bool or string otherwise
  std::optional<Shape> shape;            // -1: any extent
};

// Parses JSON text (RFC 8259). Throws Error(invalid_argument) naming `what` and the place of the mistake.
SDX_TOOLS_API nlohmann::json parse_json(std::string_view text, std::string_view what);

// A number, string or bool is a scalar; nested lists are a tensor. {"dtype": "int64", "shape": [2, 2], "data": [1, 2, 3, 4]}
// says it in full: dtype and shape may be left out, data may be flat or nested. "NaN", "Infinity" and "-Infinity" stand for
// the numbers that JSON lacks, and a complex number is [real, imaginary]. Elements must fit the type exactly: integers
// out of range, fractions for integers and lists of uneven length are Error(invalid_argument) with their path. A flat list
// (or scalar) whose element count matches a fully known hint.shape takes that shape.
SDX_TOOLS_API Tensor tensor_from_json(const nlohmann::json& json, const JsonHint& hint, std::string_view name);

// {"dtype": …, "shape": […], "data": [flat, row-major]}; numbers have as many digits as are needed to read the same value
// back. Sequences: {"sequence": […], "dtype"}; maps: {"map": {"key_dtype", "dtype", "keys", "values"}}; nothing: null.
// Appends to `out`.
SDX_TOOLS_API void append_json(std::string& out, const Value& value);

}  // namespace sdx
