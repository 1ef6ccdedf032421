// The words of sdx/quantize.hpp.

#include <array>
#include <sdx/quantize.hpp>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text/ascii.h"

namespace sdx {
namespace {

template <class T>
struct Word {
  T value;
  std::string_view name, plain;  // ONNX Runtime's, and what people type
};

constexpr std::array<Word<QuantType>, 7> kTypes{{
    {QuantType::qint8, "QInt8", "int8"},
    {QuantType::quint8, "QUInt8", "uint8"},
    {QuantType::qint16, "QInt16", "int16"},
    {QuantType::quint16, "QUInt16", "uint16"},
    {QuantType::qint4, "QInt4", "int4"},
    {QuantType::quint4, "QUInt4", "uint4"},
    {QuantType::qfloat8e4m3fn, "QFLOAT8E4M3FN", "float8e4m3fn"},
}};
constexpr std::array<Word<QuantFormat>, 2> kFormats{{
    {QuantFormat::qdq, "QDQ", "qdq"},
    {QuantFormat::qoperator, "QOperator", "qoperator"},
}};
constexpr std::array<Word<CalibrationMethod>, 5> kMethods{{
    {CalibrationMethod::minmax, "MinMax", "minmax"},
    {CalibrationMethod::entropy, "Entropy", "entropy"},
    {CalibrationMethod::percentile, "Percentile", "percentile"},
    {CalibrationMethod::distribution, "Distribution", "distribution"},
    {CalibrationMethod::mse, "MSE", "mse"},
}};

template <class T, std::size_t N>
std::string_view name_in(const std::array<Word<T>, N>& words, T value) noexcept {
  for (const auto& w : words) {
    if (w.value == value) return w.name;
  }
  return "?";
}

template <class T, std::size_t N>
T parse_in(const std::array<Word<T>, N>& words, std::string_view text, const char* what) {
  const std::string asked = ascii_lower(text);
  std::vector<std::string> names;
  for (const auto& w : words) {
    if (asked == w.plain || asked == ascii_lower(w.name)) return w.value;
    names.emplace_back(w.plain);
  }
  const std::string near = closest(asked, names);
  fail(ErrorCode::invalid_argument, "unknown {} '{}'{} Known: {}", what, text,
       near.empty() ? "." : "; did you mean '" + near + "'?", join(names));
}

}  // namespace

std::string_view name(QuantType type) noexcept { return name_in(kTypes, type); }
std::string_view name(QuantFormat format) noexcept { return name_in(kFormats, format); }
std::string_view name(CalibrationMethod method) noexcept { return name_in(kMethods, method); }

QuantType parse_quant_type(std::string_view text) { return parse_in(kTypes, text, "type"); }
QuantFormat parse_quant_format(std::string_view text) { return parse_in(kFormats, text, "format"); }
CalibrationMethod parse_calibration_method(std::string_view text) { return parse_in(kMethods, text, "calibration method"); }

DataType data_type(QuantType type) noexcept {
  switch (type) {
    case QuantType::qint8: return DataType::int8;
    case QuantType::quint8: return DataType::uint8;
    case QuantType::qint16: return DataType::int16;
    case QuantType::quint16: return DataType::uint16;
    case QuantType::qint4: return DataType::int4;
    case QuantType::quint4: return DataType::uint4;
    case QuantType::qfloat8e4m3fn: return DataType::float8e4m3fn;
  }
  return DataType::undefined;
}

}  // namespace sdx
