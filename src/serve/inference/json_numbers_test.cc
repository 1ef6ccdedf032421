#include "serve/inference/json_numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "serve/models/datatypes.h"
#include "support/session.h"

namespace sdx::serve {
namespace {

using namespace sdx::testing;

std::string written(const Tensor& t) {
  std::string out;
  append_values(out, t, "y");
  return out;
}

std::string refusal(std::string_view json, DataType type, Shape shape) {
  return error_of(ErrorCode::invalid_argument, [&] { read_values(json, type, std::move(shape), "input 'x'"); });
}

TEST(JsonNumbers, values_of_the_list_are_set_aside) {
  const Skeleton s =
      set_values_aside(R"({"id":"]\"}", "inputs":[ {"data" : [[1,2],[3]] ,"name":"a"},{"shape":[1],"data":["]","\""]}],
    "outputs":[{"data":[7]}]})",
                       "inputs", "data");
  ASSERT_EQ(s.values.size(), 2U);
  EXPECT_EQ(s.values[0], "[[1,2],[3]]");
  EXPECT_EQ(s.values[1], R"(["]","\""])");
  EXPECT_NE(s.text.find(R"({"data" : 0 ,"name":"a"})"), std::string::npos) << s.text;
  EXPECT_NE(s.text.find(R"("outputs":[{"data":[7]}])"), std::string::npos) << s.text;
}

TEST(JsonNumbers, what_is_not_data_is_limited) {
  const std::string much = "{\"x\":[" + std::string(std::size_t{9} << 20, ' ') + "]}";
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { set_values_aside(much, "inputs", "data"); }), {"besides its data"});
  std::string many = "{\"inputs\":[{";
  for (int i = 0; i < 5000; ++i) many += "\"data\":[],";
  many.back() = '}';
  expect_parts(error_of(ErrorCode::invalid_argument, [&] { set_values_aside(many + "]}", "inputs", "data"); }), {"4096 arrays"});
}

TEST(JsonNumbers, brackets_and_quotes_must_match) {
  for (const char* broken :
       {"", "[", "{", "{\"inputs\":[", "{\"inputs\":[{\"data\":[1}", "{\"inputs\":[{\"data\":[\"\\", "{\"a\"}"}) {
    error_of(ErrorCode::invalid_argument, [&] { set_values_aside(broken, "inputs", "data"); });
  }
}

TEST(JsonNumbers, nested_and_flat_arrays_are_the_same) {
  for (const char* json : {"[1,-2,3.5e2,0.25]", "[[1,-2],[3.5e2,0.25]]", " [ [ [1] , [-2] ] , [ 3.5E+2 , 0.25 ] ] "}) {
    EXPECT_EQ(elements(read_values(json, DataType::float32, {2, 2}, "x")), (Floats{1, -2, 350, 0.25}));
  }
  EXPECT_EQ(read_values("[]", DataType::float32, {0}, "x").size(), 0);
  EXPECT_EQ(read_values("[[],[]]", DataType::float32, {2, 0}, "x").size(), 0);
}

TEST(JsonNumbers, types_take_what_they_hold) {
  EXPECT_EQ(read_values("[true,0,1,false]", DataType::boolean, {4}, "x").values<bool>()[2], true);
  EXPECT_EQ(read_values("[-128,127]", DataType::int8, {2}, "x").values<std::int8_t>()[0], -128);
  EXPECT_EQ(read_values("[18446744073709551615]", DataType::uint64, {1}, "x").values<std::uint64_t>()[0],
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(read_values(R"(["", "a\u00e9\ud83d\ude00\n", "é"])", DataType::string, {3}, "x").values<std::string>()[1],
            "aé\U0001F600\n");
  EXPECT_EQ(read_values("[1e-60]", DataType::float32, {1}, "x").values<float>()[0], 0.0F);
  EXPECT_EQ(read_values("[1e-310]", DataType::float64, {1}, "x").values<double>()[0], 1e-310);
}

TEST(JsonNumbers, mistakes_are_named) {
  expect_parts(refusal("[128]", DataType::int8, {1}), {"input 'x'", "does not fit", "128"});
  expect_parts(refusal("[-1]", DataType::uint8, {1}), {"not a number of the type"});
  expect_parts(refusal("[1.5]", DataType::int32, {1}), {"comma is missing"});
  expect_parts(refusal("[1e60]", DataType::float32, {1}), {"does not fit"});
  expect_parts(refusal("[1,2,3]", DataType::float32, {2}), {"more values than the 2"});
  expect_parts(refusal("[1]  ", DataType::float32, {2}), {"has 2 elements", "has 1"});
  expect_parts(refusal("[1]", DataType::float32, {1, 1000}), {"more elements"});
  expect_parts(refusal("[1]", DataType::float16, {1}), {"only as binary data"});
  expect_parts(refusal(R"(["a])", DataType::string, {1}), {"does not end"});
  expect_parts(refusal(R"(["\x"])", DataType::string, {1}), {"escape"});
  for (const char* broken : {"1", "[1,]", "[,1]", "[1 2]", "[1]]", "[1", "[01]", "[1.]", "[.5]", "[nan]", "[inf]", "[+1]",
                             "[0x1]", "[-]", "[\"1\"]", "[[1],]", "[true]", "[null]", "[1,,2]"}) {
    refusal(broken, DataType::float32, {1});
  }
}

TEST(JsonNumbers, what_is_written_reads_back_the_same) {
  const Tensor t = floats({5}, {0.1F, -1e-45F, 3.4028235e38F, 16777216.0F, 1.0F / 3});
  EXPECT_EQ(elements(read_values(written(t), DataType::float32, {5}, "x")), elements(t));
  EXPECT_EQ(written(floats({3}, {NAN, INFINITY, -INFINITY})), "[null,null,null]");
  EXPECT_EQ(written(Tensor::of<std::string>({2}, {"a\"\\\n", "é"})), R"(["a\"\\\u000a","é"])");
  error_of(ErrorCode::invalid_argument, [] { written(Tensor::of<std::string>({1}, {"\xC0\x80"})); });
  const std::uint16_t halves[]{0x3C00, 0xC000, 0x0001, 0x7BFF};
  EXPECT_EQ(written(Tensor::view(halves, DataType::float16, {4})), "[1,-2,5.9604645e-08,65504]");
}

TEST(Datatypes, strings_in_bytes) {
  const std::string bytes("\x01\0\0\0a\0\0\0\0", 9);
  const Tensor t = tensor_of_bytes(bytes, DataType::string, {2}, nullptr, "x");
  EXPECT_EQ(t.values<std::string>()[0], "a");
  std::string again;
  append_bytes(again, t);
  EXPECT_EQ(again, bytes);
  for (const std::int64_t count : {1, 3, 1 << 30}) {
    error_of(ErrorCode::invalid_argument, [&] { tensor_of_bytes(bytes, DataType::string, {count}, nullptr, "x"); });
  }
  error_of(ErrorCode::invalid_argument, [] { tensor_of_bytes("\x02", DataType::boolean, {1}, nullptr, "x"); });
  error_of(ErrorCode::invalid_argument, [] { tensor_of_bytes("abc", DataType::int32, {1}, nullptr, "x"); });
}

}  // namespace
}  // namespace sdx::serve
