#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <cstring>

#include "base/text/json_text.h"
#include "tensor/element.h"
#include "tensor/json.h"

namespace sdx {
namespace {

template <class T>
void append_real(std::string& out, T value) {
  if (std::isnan(value)) {
    out += "\"NaN\"";
  } else if (std::isinf(value)) {
    out += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
}

template <class T>
void append_pair(std::string& out, const Tensor& t, std::int64_t i) {
  std::complex<T> z;
  std::memcpy(&z, static_cast<const char*>(t.data()) + static_cast<std::size_t>(i) * sizeof z, sizeof z);
  out += '[';
  append_real(out, z.real());
  out += ',';
  append_real(out, z.imag());
  out += ']';
}

void append_element(std::string& out, const Tensor& t, std::int64_t i) {
  switch (t.dtype()) {
    case DataType::string: return append_json_string(out, static_cast<const std::string*>(t.data())[i]);
    case DataType::boolean: out += element_as_double(t, i) != 0 ? "true" : "false"; return;
    case DataType::complex64: return append_pair<float>(out, t, i);
    case DataType::complex128: return append_pair<double>(out, t, i);
    case DataType::float64: return append_real(out, element_as_double(t, i));
    case DataType::uint64: {
      std::uint64_t v = 0;
      std::memcpy(&v, static_cast<const char*>(t.data()) + static_cast<std::size_t>(i) * 8, 8);
      out += fmt::format_int(v).c_str();
      return;
    }
    default: break;
  }
  if (is_integer(t.dtype())) {
    out += fmt::format_int(element_as_int(t, i)).c_str();
  } else {
    append_real(out, static_cast<float>(element_as_double(t, i)));
  }
}

void append_data(std::string& out, const Tensor& t) {
  out += '[';
  for (std::int64_t i = 0; i < t.size(); ++i) {
    if (i != 0) out += ',';
    append_element(out, t, i);
  }
  out += ']';
}

void append_tensor(std::string& out, const Tensor& t) {
  fmt::format_to(std::back_inserter(out), "{{\"dtype\":\"{}\",\"shape\":{},\"data\":", name(t.dtype()), to_string(t.shape()));
  append_data(out, t);
  out += '}';
}

void append_map(std::string& out, const Map& map) {
  fmt::format_to(std::back_inserter(out), "{{\"map\":{{\"key_dtype\":\"{}\",\"dtype\":\"{}\",\"keys\":", name(map.keys.dtype()),
                 name(map.values.dtype()));
  append_data(out, map.keys);
  out += ",\"values\":";
  append_data(out, map.values);
  out += "}}";
}

}  // namespace

void append_json(std::string& out, const Value& value) {
  if (value.is_tensor()) return append_tensor(out, value.tensor());
  if (value.is_map()) return append_map(out, value.map());
  if (!value.is_sequence()) {
    out += "null";
    return;
  }
  const Sequence& sequence = value.sequence();
  out += "{\"sequence\":[";
  for (std::size_t i = 0; i < sequence.items.size(); ++i) {
    if (i != 0) out += ',';
    append_json(out, sequence.items[i]);
  }
  out += "]";
  if (sequence.element_type != DataType::undefined) {
    fmt::format_to(std::back_inserter(out), ",\"dtype\":\"{}\"", name(sequence.element_type));
  }
  out += '}';
}

}  // namespace sdx
