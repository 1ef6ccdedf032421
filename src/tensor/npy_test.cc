#include "tensor/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tensor/element.h"
#include "tensor/npz.h"
#include "tensor/types.h"

namespace sdx {
namespace {

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span<const char>(s)); }

std::string npy(const std::string& descr, const std::string& shape, const std::string& data, bool fortran = false,
                int version = 1) {
  std::string dict =
      "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }\n";
  std::string out("\x93NUMPY", 6);
  out += static_cast<char>(version);
  out += '\0';
  out += static_cast<char>(dict.size() & 0xFF);
  out += static_cast<char>(dict.size() >> 8);
  if (version > 1) out += std::string(2, '\0');
  return out + dict + data;
}

template <class T>
std::string raw(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

// An owning tensor: parse_npy() views its input.
Tensor parse(const std::string& file, DataType opaque = DataType::undefined) {
  return parse_npy(bytes_of(file), nullptr, opaque).clone();
}

TEST(Npy, ReadsPlainNumbersWithoutCopying) {
  const std::string file = npy("<f4", "(2, 3)", raw<float>({1, 2, 3, 4, 5, 6}));
  const Tensor t = parse_npy(bytes_of(file));
  EXPECT_EQ(t.type_string(), "float32[2,3]");
  EXPECT_EQ(static_cast<const char*>(t.data()), file.data() + file.size() - 24);
  EXPECT_EQ(to_floats(t), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(Npy, ReadsEveryVersionAndScalars) {
  for (const int version : {1, 2, 3}) {
    EXPECT_EQ(parse(npy("<i8", "()", raw<std::int64_t>({-7}), false, version)).values<std::int64_t>()[0], -7);
  }
  EXPECT_EQ(parse(npy("<i2", "(3L,)", raw<std::int16_t>({1, 2, 3}))).type_string(), "int16[3]");
  EXPECT_THROW(parse(npy("<i2", "(1,)", raw<std::int16_t>({1}), false, 4)), Error);
}

TEST(Npy, ConvertsOrder) {
  const Tensor t = parse(npy("<i4", "(2, 3)", raw<std::int32_t>({1, 4, 2, 5, 3, 6}), true));
  EXPECT_EQ(to_ints(t), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6}));
  const Tensor cube = parse(npy("|u1", "(2, 2, 2)", raw<std::uint8_t>({0, 4, 2, 6, 1, 5, 3, 7}), true));
  EXPECT_EQ(to_ints(cube), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(parse(npy("<i4", "(0, 3)", "", true)).type_string(), "int32[0,3]");
}

TEST(Npy, ConvertsBigEndian) {
  EXPECT_EQ(parse(npy(">i4", "(1,)", std::string("\0\0\1\2", 4))).values<std::int32_t>()[0], 258);
  EXPECT_EQ(parse(npy(">f8", "(1,)", std::string("\x3f\xf8\0\0\0\0\0\0", 8))).values<double>()[0], 1.5);
  const Tensor z = parse(npy(">c8", "(1,)", std::string("\x3f\x80\0\0\x40\0\0\0", 8)));
  float parts[2];
  std::memcpy(parts, z.data(), 8);
  EXPECT_EQ(parts[0], 1.0F);
  EXPECT_EQ(parts[1], 2.0F);
}

TEST(Npy, NormalisesBools) {
  const Tensor t = parse(npy("|b1", "(4,)", raw<std::uint8_t>({0, 1, 2, 255})));
  EXPECT_EQ(std::memcmp(t.data(), "\0\1\1\1", 4), 0);
}

TEST(Npy, ReadsText) {
  const std::string units = raw<std::uint32_t>({'a', 0xE9, 0, 0x1F600, 0, 0});
  const Tensor t = parse(npy("<U3", "(2,)", units));
  EXPECT_EQ(t.values<std::string>()[0], "a\xC3\xA9");
  EXPECT_EQ(t.values<std::string>()[1], "\xF0\x9F\x98\x80");
  EXPECT_EQ(parse(npy(">U1", "(1,)", std::string("\0\0\0x", 4))).values<std::string>()[0], "x");
  EXPECT_EQ(parse(npy("|S3", "(2,)", std::string("ab\0c\0\0", 6))).values<std::string>()[0], "ab");
  EXPECT_THROW(parse(npy("<U1", "(1,)", raw<std::uint32_t>({0xD800}))), Error);
  EXPECT_THROW(parse(npy("<U1", "(1,)", raw<std::uint32_t>({0x110000}))), Error);
}

TEST(Npy, ReadsOpaqueBytesAsTheWantedType) {
  EXPECT_EQ(parse(npy("<V2", "(1,)", std::string("\x80\x3f", 2))).dtype(), DataType::bfloat16);
  EXPECT_EQ(parse(npy("|V1", "(1,)", "\x38"), DataType::float8e4m3fn).dtype(), DataType::float8e4m3fn);
  const Tensor packed = parse(npy("|V1", "(3,)", std::string("\x01\x0f\x07", 3)), DataType::int4);
  EXPECT_EQ(packed.dtype(), DataType::int4);
  EXPECT_EQ(element_as_int(packed, 1), -1);
  EXPECT_EQ(element_as_int(packed, 2), 7);
}

TEST(Npy, RefusesWhatItCannotRead) {
  const std::string four(4, '\0');
  for (const char* descr : {"|O", "<f3", "<f16", "<M8", "", "<", "f", "<U", "<i4x", "<q4", "|V3", "<U999999999999"}) {
    EXPECT_THROW(parse(npy(descr, "(1,)", four)), Error) << descr;
  }
  for (const char* shape : {"(-1,)", "(2,)", "(9223372036854775807,)", "(99999999999999999999,)", "(4611686018427387904, 4)",
                            "[1]", "(1", "(a,)", "(1 2)"}) {
    EXPECT_THROW(parse(npy("<f4", shape, four)), Error) << shape;
  }
  EXPECT_THROW(parse(npy("<U0", "(4611686018427387904,)", "")), Error);
  EXPECT_THROW(parse(npy("<U1", "(1, 4611686018427387904)", four)), Error);
  EXPECT_THROW(parse("\x93NUMPY"), Error);
  EXPECT_THROW(parse(""), Error);
}

std::vector<Tensor> samples() {
  std::vector<Tensor> out;
  for (int i = 1; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    if (type == DataType::string) continue;
    Tensor t(type, {3, 5});
    std::memset(t.mutable_data(), 0, t.bytes());
    for (std::int64_t e = 0; e < t.size(); ++e) set_element(t, e, static_cast<double>(e % 4));
    out.push_back(t);
  }
  out.push_back(Tensor::of<std::string>({2, 2}, {"", "h\xC3\xA9", "\xF0\x9F\x98\x80 abc", "x"}));
  out.push_back(Tensor::of<std::string>({1}, {"\xff\xfe"}));
  out.push_back(Tensor(DataType::float32, {0, 4}));
  out.push_back(Tensor::scalar<double>(2.5));
  return out;
}

TEST(Npy, RoundTripsEveryType) {
  for (const Tensor& t : samples()) {
    const std::string file = to_npy(t);
    const Tensor back = parse(file, t.dtype());
    EXPECT_EQ(back.shape(), t.shape()) << t.type_string();
    if (t.dtype() == DataType::string) {
      EXPECT_TRUE(std::equal(t.values<std::string>().begin(), t.values<std::string>().end(), back.values<std::string>().begin()));
      continue;
    }
    for (std::int64_t e = 0; e < t.size(); ++e) EXPECT_EQ(element_as_double(back, e), element_as_double(t, e)) << t.type_string();
    EXPECT_EQ((file.size() - std::max<std::size_t>(back.bytes(), is_sub_byte(t.dtype()) ? 15 : 0)) % 64, 0U) << t.type_string();
  }
}

NamedTensors archive() {
  return {{"x", Tensor::of<float>({2, 2}, {1, 2, 3, 4})},
          {"folder/y", Tensor::of<std::int64_t>({3}, {-1, 0, 1})},
          {"text", Tensor::of<std::string>({2}, {"ab", "c"})},
          {"zeros", Tensor::of<float>({64}, std::vector<float>(64))}};
}

TEST(Npz, RoundTrips) {
  for (const bool compress : {false, true}) {
    const std::string file = to_npz(archive(), compress);
    const NamedTensors back = parse_npz(bytes_of(file));
    ASSERT_EQ(back.size(), 4U);
    EXPECT_EQ(back[0].first, "x");
    EXPECT_EQ(to_floats(back[0].second), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(back[1].first, "folder/y");
    EXPECT_EQ(to_ints(back[1].second), (std::vector<std::int64_t>{-1, 0, 1}));
    EXPECT_EQ(back[2].second.values<std::string>()[1], "c");
    const auto* at = static_cast<const char*>(back[0].second.data());
    if (!compress) {
      ASSERT_TRUE(at > file.data() && at < file.data() + file.size());
      EXPECT_EQ((at - file.data()) % 64, 0);
    }
  }
}

TEST(Npz, RefusesDamage) {
  const std::string good = to_npz(archive(), false);
  std::string flipped = good;
  flipped[good.find("NUMPY") + 122 + 3] ^= 1;  // in the data of the first member
  EXPECT_THROW(parse_npz(bytes_of(flipped)), Error);
  EXPECT_THROW(parse_npz(bytes_of("PK")), Error);
  EXPECT_THROW(to_npz({{"a", Tensor::scalar<float>(1)}, {"a", Tensor::scalar<float>(2)}}), Error);
  NpzLimits tight;
  tight.unpacked_bytes = 200;
  const std::string packed = to_npz(archive(), true);
  EXPECT_THROW(parse_npz(bytes_of(packed), nullptr, tight), Error);
}

TEST(Npz, RefusesABomb) {
  std::string bomb = to_npz({{"a", Tensor::of<float>({1000}, std::vector<float>(1000))}}, true);
  const std::size_t central = bomb.rfind(std::string("PK\1\2", 4));
  const std::uint32_t claim = 0xF0000000;
  std::memcpy(bomb.data() + central + 24, &claim, 4);
  EXPECT_THROW(parse_npz(bytes_of(bomb)), Error);
}

// Damaged files must give an Error or a tensor, never a crash; sanitizer builds make this test sharp.
template <class Parse>
void mutate(const std::string& good, unsigned seed, Parse&& read) {
  std::mt19937 random(seed);
  int thrown = 0;
  const auto attempt = [&](const std::string& file) {
    try {
      read(file);
    } catch (const Error&) {
      ++thrown;
    }
  };
  for (std::size_t cut = 0; cut < good.size(); ++cut) attempt(good.substr(0, cut));
  EXPECT_GE(thrown, static_cast<int>(good.size()) - 100);
  for (int round = 0; round < 3000; ++round) {
    std::string file = good;
    for (unsigned n = random() % 4 + 1; n > 0; --n) {
      file[random() % file.size()] = static_cast<char>(random() % 3 == 0 ? 0xFF : random() & 0xFF);
    }
    attempt(file);
  }
}

TEST(Npy, SurvivesDamagedFiles) {
  mutate(to_npy(Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6})), 1, [](const std::string& f) { parse(f); });
  mutate(to_npy(Tensor::of<std::string>({3}, {"ab", "c", "d"})), 2, [](const std::string& f) { parse(f); });
  mutate(npy(">f4", "(2, 2)", raw<float>({1, 2, 3, 4}), true), 3, [](const std::string& f) { parse(f); });
}

TEST(Npz, SurvivesDamagedFiles) {
  mutate(to_npz(archive(), false), 4, [](const std::string& f) { parse_npz(bytes_of(f)); });
  mutate(to_npz(archive(), true), 5, [](const std::string& f) { parse_npz(bytes_of(f)); });
}

}  // namespace
}  // namespace sdx
