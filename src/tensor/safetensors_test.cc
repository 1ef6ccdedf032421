#include "tensor/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <sdx/error.hpp>

#include "base/system/mapped_file.h"

namespace sdx {
namespace {

std::string file_of(const std::string& header, std::size_t data) {
  const std::uint64_t length = header.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + header + std::string(data, '\1');
}

SafeTensors parse(const std::string& file) { return parse_safetensors(std::as_bytes(std::span(file))); }

TEST(SafeTensors, ThereAndBack) {
  const auto path = std::filesystem::temp_directory_path() / "sdx_safetensors_test.safetensors";
  const Tensor a = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), b = Tensor::of<std::int64_t>({}, {-7}),
               c(DataType::bfloat16, {0, 4});
  write_safetensors(path, {{"a", a}, {"b", b}, {"c", c}}, {{"format", "pt"}});
  const SafeTensors read = read_safetensors(path);
  std::filesystem::remove(path);
  ASSERT_EQ(read.tensors.size(), 3U);
  EXPECT_EQ(read.metadata.at("format"), "pt");
  EXPECT_EQ(read.tensors.at("a").aligned().values<float>()[4], 5);
  EXPECT_EQ(read.tensors.at("b").aligned().values<std::int64_t>()[0], -7);
  EXPECT_EQ(read.tensors.at("c").type_string(), "bfloat16[0,4]");
}

// The format's own implementation takes null for "no metadata", and MLX writes it.
TEST(SafeTensors, MetadataMayBeNull) {
  const SafeTensors read =
      parse(file_of("{\"__metadata__\":null,\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2));
  EXPECT_TRUE(read.metadata.empty());
  EXPECT_EQ(read.tensors.at("a").type_string(), "uint8[2]");
}

TEST(SafeTensors, RefusesWhatIsMalformed) {
  const std::vector<std::string> bad{
      "",
      "1234567",
      file_of("", 0),
      file_of("[]", 0),
      file_of("{\"a\":1}", 0),
      file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 3),
      file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5),
      file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4),
      file_of("{\"a\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4),
      file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4),
      file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0),
      file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8),
      file_of("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_"
              "offsets\":[2,6]}}",
              6),
      file_of("{\"__metadata__\":{\"a\":1}}", 0),
      file_of("{\"__metadata__\":{\"a\":null}}", 0),
      file_of("{\"__metadata__\":[]}", 0),
      std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}"),
  };
  for (const std::string& file : bad) EXPECT_THROW(parse(file), Error) << file;
  EXPECT_TRUE(parse(file_of("{}", 0)).tensors.empty());
}

}  // namespace
}  // namespace sdx
