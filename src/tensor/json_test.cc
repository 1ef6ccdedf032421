#include "tensor/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "support/errors.h"
#include "tensor/element.h"
#include "tensor/types.h"

namespace sdx {
namespace {

Tensor read(const std::string& text, DataType dtype = DataType::undefined, std::optional<Shape> shape = {}) {
  return tensor_from_json(parse_json(text, "test"), {dtype, std::move(shape)}, "x");
}

std::string message(const std::string& text, DataType dtype = DataType::undefined) {
  return testing::error_text([&] { read(text, dtype); });
}

std::string write(const Value& value) {
  std::string out;
  append_json(out, value);
  return out;
}

TEST(Json, ReadsNestedLists) {
  const Tensor t = read("[[1, 2, 3], [4, 5, 6]]", DataType::float32);
  EXPECT_EQ(t.type_string(), "float32[2,3]");
  EXPECT_EQ(to_floats(t), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read("3", DataType::int64).type_string(), "int64[]");
  EXPECT_EQ(read("[]", DataType::int64).type_string(), "int64[0]");
  EXPECT_EQ(read("[[], []]", DataType::int64).type_string(), "int64[2,0]");
}

TEST(Json, GuessesTypes) {
  EXPECT_EQ(read("[1, 2]").dtype(), DataType::int64);
  EXPECT_EQ(read("[1, 2.5]").dtype(), DataType::float32);
  EXPECT_EQ(read("[1, \"NaN\"]").dtype(), DataType::float32);
  EXPECT_EQ(read("[[true]]").dtype(), DataType::boolean);
  EXPECT_EQ(read("\"word\"").dtype(), DataType::string);
}

TEST(Json, ReadsObjects) {
  const Tensor t = read(R"({"dtype": "int8", "shape": [2, 2], "data": [1, 2, 3, -128]})", DataType::float32);
  EXPECT_EQ(t.type_string(), "int8[2,2]");
  EXPECT_EQ(element_as_int(t, 3), -128);
  EXPECT_EQ(read(R"({"shape": [4], "data": [[1, 2], [3, 4]]})", DataType::int32).type_string(), "int32[4]");
  EXPECT_NE(message(R"({"shape": [3], "data": [1]})").find("needs 3 elements"), std::string::npos);
  EXPECT_NE(message(R"({"dtype": "flaot", "data": [1]})").find("unknown \"dtype\""), std::string::npos);
  EXPECT_NE(message(R"({"values": [1]})").find("unknown key \"values\""), std::string::npos);
  EXPECT_NE(message(R"({"shape": [-1], "data": [1]})").find(">= 0"), std::string::npos);
  EXPECT_NE(message(R"({"shape": [1]})").find("needs \"data\""), std::string::npos);
}

TEST(Json, TakesTheShapeThatIsExpected) {
  EXPECT_EQ(read("[1, 2, 3, 4]", DataType::float32, Shape{1, 4}).type_string(), "float32[1,4]");
  EXPECT_EQ(read("[1, 2, 3, 4]", DataType::float32, Shape{-1, 4}).type_string(), "float32[4]");
  EXPECT_EQ(read("5", DataType::int64, Shape{1}).type_string(), "int64[1]");
}

TEST(Json, RefusesUnevenLists) {
  EXPECT_NE(message("[[1, 2], [3]]").find("x[1]': this list has 1 element,"), std::string::npos);
  EXPECT_NE(message("[[1, 2], 3]").find("x[1]': expected a list"), std::string::npos);
  EXPECT_NE(message("[1, [2]]").find("x[1]': expected one element"), std::string::npos);
  EXPECT_NE(message(std::string(1000, '[') + std::string(1000, ']')).find("nested deeper"), std::string::npos);
}

TEST(Json, ChecksElements) {
  EXPECT_NE(message("[0, 256]", DataType::uint8).find("x[1]': 256 cannot be an element of type uint8: its range is 0 to 255"),
            std::string::npos);
  EXPECT_NE(message("-1", DataType::uint64).find("range"), std::string::npos);
  EXPECT_NE(message("8", DataType::int4).find("-8 to 7"), std::string::npos);
  EXPECT_NE(message("9223372036854775808", DataType::int64).find("range"), std::string::npos);
  EXPECT_NE(message("1.5", DataType::int64).find("fraction"), std::string::npos);
  EXPECT_NE(message("1e300", DataType::int64).find("range"), std::string::npos);
  EXPECT_NE(message("1e39", DataType::float32).find("range"), std::string::npos);
  EXPECT_NE(message("70000", DataType::float16).find("range"), std::string::npos);
  EXPECT_NE(message("\"a\"", DataType::float32).find("expected a number"), std::string::npos);
  EXPECT_NE(message("1", DataType::string).find("expected a string"), std::string::npos);
  EXPECT_NE(message("2", DataType::boolean).find("true or false"), std::string::npos);
  EXPECT_NE(message("null").find("received null"), std::string::npos);
  EXPECT_EQ(read("18446744073709551615", DataType::uint64).values<std::uint64_t>()[0], UINT64_MAX);
  EXPECT_EQ(read("-9223372036854775808", DataType::int64).values<std::int64_t>()[0], INT64_MIN);
  EXPECT_EQ(read("3.0", DataType::int32).values<std::int32_t>()[0], 3);
  EXPECT_TRUE(std::isnan(read("[\"NaN\"]", DataType::float32).values<float>()[0]));
  EXPECT_EQ(read("\"-Infinity\"", DataType::float64).values<double>()[0], -std::numeric_limits<double>::infinity());
}

TEST(Json, ReportsSyntaxErrors) {
  EXPECT_NE(message("[1, 2").find("test is not valid JSON"), std::string::npos);
  EXPECT_NE(message("").find("not valid JSON"), std::string::npos);
  EXPECT_NE(message("\"\xff\"").find("not valid JSON"), std::string::npos);
  EXPECT_EQ(message("[1, 2"), "test is not valid JSON: it ends too early, expected ']'");
  EXPECT_EQ(message(" "), "test is not valid JSON: it is empty");
  EXPECT_EQ(message("[1, foo]"), "test is not valid JSON: found 'foo', expected a value (column 5)");
  EXPECT_EQ(message("[1] x"), "test is not valid JSON: found 'x', expected nothing more (column 5)");
  EXPECT_EQ(message("[1,\n {\"a\": }]"), "test is not valid JSON: found '}', expected a value (line 2, column 8)");
  EXPECT_EQ(message("{1: 2}"), "test is not valid JSON: found a number, expected text in double quotes (column 2)");
  EXPECT_EQ(message("['a']"), "test is not valid JSON: found a single quote; text needs double quotes (column 2)");
  EXPECT_EQ(message("\"abc"), "test is not valid JSON: invalid string: missing closing quote (column 4)");
}

TEST(Json, WritesEveryKindOfValue) {
  EXPECT_EQ(write(Tensor::of<float>({2, 2}, {0.1F, -1, 1e20F, std::numeric_limits<float>::quiet_NaN()})),
            R"({"dtype":"float32","shape":[2,2],"data":[0.1,-1,1e+20,"NaN"]})");
  EXPECT_EQ(write(Tensor::scalar<double>(-std::numeric_limits<double>::infinity())),
            R"({"dtype":"float64","shape":[],"data":["-Infinity"]})");
  EXPECT_EQ(write(Tensor::of<std::string>({2}, {"a\"\n\x01", "\xff"})),
            "{\"dtype\":\"string\",\"shape\":[2],\"data\":[\"a\\\"\\n\\u0001\",\"\xEF\xBF\xBD\"]}");
  EXPECT_EQ(write(Tensor::of<bool>({2}, {true, false})), R"({"dtype":"bool","shape":[2],"data":[true,false]})");
  EXPECT_EQ(write(Tensor::of<std::uint64_t>({1}, {UINT64_MAX})),
            R"({"dtype":"uint64","shape":[1],"data":[18446744073709551615]})");
  EXPECT_EQ(write(Value()), "null");
  const Map map{Tensor::of<std::string>({1}, {"k"}), Tensor::of<float>({1}, {0.5F})};
  EXPECT_EQ(write(map), R"({"map":{"key_dtype":"string","dtype":"float32","keys":["k"],"values":[0.5]}})");
  Sequence sequence{DataType::int64, {Tensor::scalar<std::int64_t>(1)}};
  EXPECT_EQ(write(sequence), R"({"sequence":[{"dtype":"int64","shape":[],"data":[1]}],"dtype":"int64"})");
}

TEST(Json, RoundTripsNumbers) {
  for (int i = 1; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    if (type == DataType::string) continue;
    Tensor t(type, {2, 2});
    for (std::int64_t e = 0; e < 4; ++e) set_element(t, e, type == DataType::boolean ? e % 2 : static_cast<double>(1 << e) / 4);
    const Tensor back = read(write(t));
    EXPECT_EQ(back.type_string(), t.type_string());
    for (std::int64_t e = 0; e < 4; ++e) EXPECT_EQ(element_as_double(back, e), element_as_double(t, e)) << t.type_string();
  }
}

}  // namespace
}  // namespace sdx
