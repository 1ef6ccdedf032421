#include <sdx/array/io.hpp>

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include <sdx/array.hpp>

#include "support/gguf_bytes.h"

namespace mx = sdx::array;
namespace fs = std::filesystem;
using mx::array;
using mx::Dtype;

namespace {

class ArrayFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("sdx_array_files_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path at(const char* name) const { return folder_ / name; }
  fs::path write(const char* name, const std::string& bytes) const {
    std::ofstream(at(name), std::ios::binary) << bytes;
    return at(name);
  }

  fs::path folder_;
};

void same(const array& a, const array& b) {
  ASSERT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_EQ(std::memcmp(a.tensor().data(), b.tensor().data(), a.nbytes()), 0);
}

mx::NamedArrays some() {
  const array x({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}, {2, 3});
  return {{"x", mx::multiply(x, x)},
          {"half", mx::astype(x, Dtype::float16)},
          {"whole", mx::astype(x, Dtype::int64)},
          {"one", array(7)}};
}

}  // namespace

// Files of MLX, and of others that have nothing to say about the arrays.
TEST_F(ArrayFiles, MetadataThatIsNull) {
  const std::string header = R"({"__metadata__":null,"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  const float numbers[] = {1.5F, -2};
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
  const auto [arrays, metadata] = mx::load_safetensors(write("null.safetensors", bytes));
  EXPECT_TRUE(metadata.empty());
  ASSERT_EQ(arrays.size(), 1U);
  EXPECT_EQ(arrays[0].second.data<float>()[1], -2);
}

// Arrays have no floats of 8 bits: their bytes are loaded, as MLX does it.
TEST_F(ArrayFiles, FloatsOfEightBitsAreBytes) {
  const std::string header = R"({"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  const auto arrays = mx::load_safetensors(write("eight.safetensors", bytes + header + "\x7e\xfe")).first;
  ASSERT_EQ(arrays.at(0).second.dtype(), Dtype::uint8);
  const array numbers = mx::from_fp8(arrays[0].second, Dtype::float32);
  EXPECT_EQ(numbers.data<float>()[0], 448);
  EXPECT_EQ(numbers.data<float>()[1], -448);
}

TEST_F(ArrayFiles, Npy) {
  const array x = some()[0].second;
  mx::save(at("x"), x);
  same(mx::load(at("x.npy")).arrays.at(0).second, x);
  const array z = mx::astype(x, Dtype::complex64);
  mx::save(at("z.npy"), z);
  same(mx::load_npy(at("z.npy")), z);
}

TEST_F(ArrayFiles, ManyInOne) {
  const mx::NamedArrays all = some();
  mx::savez(at("a.npz"), all);
  mx::savez_compressed(at("b"), all);
  mx::save_safetensors(at("c"), all, {{"format", "mlx"}});
  mx::save_gguf(at("d"), all,
                {{"text", std::string("a text")},
                 {"texts", std::vector<std::string>{"a", ""}},
                 {"n", array(5)},
                 {"list", array({1.5F, 2.5F})}});
  for (const char* name : {"a.npz", "b.npz", "c.safetensors", "d.gguf"}) {
    SCOPED_TRACE(name);
    const mx::Loaded loaded = mx::load(at(name));
    ASSERT_EQ(loaded.arrays.size(), all.size());
    for (const auto& [key, value] : all) {
      const auto found = std::find_if(loaded.arrays.begin(), loaded.arrays.end(), [&](const auto& a) { return a.first == key; });
      ASSERT_NE(found, loaded.arrays.end()) << key;
      same(found->second, value);
    }
  }
  EXPECT_EQ(mx::load_safetensors(at("c.safetensors")).second.at("format"), "mlx");
  const auto metadata = mx::load_gguf(at("d.gguf")).second;
  EXPECT_EQ(std::get<std::string>(metadata.at("text")), "a text");
  EXPECT_EQ(std::get<std::vector<std::string>>(metadata.at("texts")), (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(std::get<array>(metadata.at("n")).item<int>(), 5);
  same(std::get<array>(metadata.at("list")), array({1.5F, 2.5F}));
}

// One block of Q8_0: a float16 scale and 32 numbers.
TEST_F(ArrayFiles, BlocksOfGgufBecomeHalves) {
  std::string block("\x00\x38", 2);  // 0.5
  for (int i = 0; i < 32; ++i) block += static_cast<char>(i - 16);
  const fs::path file = write("q.gguf", sdx::test::GgufBytes().tensor("w", 8, {32, 1}, block).bytes());
  const array w = mx::load_gguf(file).first.at(0).second;
  EXPECT_EQ(w.dtype(), Dtype::float16);
  EXPECT_EQ(w.shape(), (sdx::Shape{1, 32}));
  const array wide = mx::astype(w, Dtype::float32);
  EXPECT_EQ(wide.data<float>()[0], -8);
  EXPECT_EQ(wide.data<float>()[31], 7.5F);
}

TEST_F(ArrayFiles, WhatIsNoSuchFileIsOneError) {
  for (const char* name : {"bad.npy", "bad.npz", "bad.safetensors", "bad.gguf"}) {
    for (const std::string& bytes :
         {std::string(), std::string("GGUF"), std::string(100, '\xFF'), std::string("\x93NUMPY\x01\x00\xFF\xFF", 10)}) {
      EXPECT_THROW(mx::load(write(name, bytes)), sdx::Error) << name;
    }
  }
  EXPECT_THROW(mx::load(at("missing.npy")), sdx::Error);
  EXPECT_THROW(mx::load(at("x.txt")), sdx::Error);
  EXPECT_THROW(mx::save_gguf(at("e"), {{"b", mx::zeros({2}, Dtype::boolean)}}), sdx::Error);
  EXPECT_FALSE(fs::exists(at("e.gguf")));
  // Integers whose data the file does not have.
  const std::string cut = sdx::test::GgufBytes().tensor_at("i", 26, {1000}, 0).bytes();
  EXPECT_THROW(mx::load_gguf(write("cut.gguf", cut)), sdx::Error);
}
