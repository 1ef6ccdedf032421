#include "tensor/gguf/gguf_model.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/gguf_bytes.h"
#include "support/temporary_folder.h"
#include "tensor/types.h"

namespace sdx {
namespace {

using test::GgufBytes;

std::shared_ptr<const GgufModel> parse(const std::string& bytes) {
  auto copy = std::make_shared<std::string>(bytes);
  return GgufModel::read(std::as_bytes(std::span<const char>(*copy)), copy, "test.gguf");
}

std::string error_of(const std::string& bytes) {
  try {
    parse(bytes);
  } catch (const Error& e) {
    EXPECT_NE(e.code(), ErrorCode::internal) << e.what();
    EXPECT_EQ(e.context(), (std::vector<std::string>{"in 'test.gguf'"}));
    return e.message();
  }
  return "no error";
}

void expect_error(const std::string& bytes, std::string_view part) {
  const std::string what = error_of(bytes);
  EXPECT_NE(what.find(part), std::string::npos) << what;
}

GgufBytes small(std::uint32_t version = 3) {
  GgufBytes b(version);
  b.text("general.architecture", "llama").u32("llama.block_count", 2).f32("llama.eps", 1e-5F).flag("yes", true);
  b.texts("tokens", {"a", "", "ccc"}).numbers<std::int32_t>("types", 5, {1, -2, 3}).numbers<float>("scores", 6, {0.5F, -1.0F});
  b.tensor("w", 0, {2, 3}, std::string(24, '\1')).tensor("half", 1, {4}, std::string(8, '\2'));
  return b;
}

TEST(GgufModel, ReadsTensorsOfBothVersions) {
  for (const std::uint32_t version : {2U, 3U}) {
    const auto file = parse(small(version).bytes());
    EXPECT_EQ(file->metadata().text("general.architecture"), "llama");
    EXPECT_EQ(file->metadata().whole("llama.block_count"), 2U);
    EXPECT_EQ(file->metadata().texts("tokens"), (std::vector<std::string_view>{"a", "", "ccc"}));
    EXPECT_EQ(file->metadata().numbers("types"), (std::vector<double>{1, -2, 3}));
    ASSERT_EQ(file->tensors().size(), 2U);
    const StoredTensor* w = file->find_tensor("w");
    ASSERT_NE(w, nullptr);
    EXPECT_EQ(w->shape, (std::vector<std::int64_t>{3, 2}));
    EXPECT_EQ(w->data.size(), 24U);
    EXPECT_EQ(static_cast<int>(w->data[0]), 1);
    EXPECT_EQ(file->find_tensor("half")->data.size(), 8U);
    EXPECT_EQ(file->find_tensor("other"), nullptr);
  }
}

TEST(GgufModel, RefusesWhatCannotBe) {
  expect_error("", "ends within the magic number");
  expect_error("GGML....", "does not begin");
  expect_error(GgufBytes(1).bytes(), "version 1");
  std::string big = GgufBytes(3).bytes();
  std::swap(big[4], big[7]);
  expect_error(big, "big-endian");
  expect_error(small().tensor_at("w", 0, {1}, 0).bytes(), "twice");
  expect_error(GgufBytes().raw_key("k", 13, "").bytes(), "unknown type 13");
  expect_error(GgufBytes().tensor_at("t", 0, {1, 1, 1, 1, 1}, 0).bytes(), "5 axes");
  expect_error(GgufBytes().tensor_at("t", 0, {std::uint64_t{1} << 63}, 0).bytes(), "too large");
  expect_error(GgufBytes().tensor_at("t", 0, {std::uint64_t{1} << 40, std::uint64_t{1} << 40}, 0).bytes(), "too large");
  expect_error(GgufBytes().tensor_at("t", 0, {0, std::uint64_t{1} << 40, std::uint64_t{1} << 40}, 0).bytes(), "too large");
  expect_error(GgufBytes().tensor_at("t", 0, {8}, 16).bytes(), "not a multiple of the alignment");
  expect_error(GgufBytes().tensor_at("t", 0, {8}, 1 << 20).bytes(), "offset 1048576");
  expect_error(GgufBytes().tensor_at("t", 0, {std::uint64_t{1} << 60}, 0).bytes(), "truncated");
  expect_error(GgufBytes().tensor("t", 2, {33}, std::string(100, 'x')).bytes(), "do not divide");
  expect_error(GgufBytes().u32("general.alignment", 3).bytes(), "general.alignment");
  std::string many;
  test::append_raw<std::uint32_t>(many, 8), test::append_raw<std::uint64_t>(many, std::uint64_t{1} << 61);
  expect_error(GgufBytes().raw_key("k", 9, many).bytes(), "ends within k");
}

TEST(GgufModel, EveryCutAndEveryChangedByteIsAnErrorOrAFile) {
  const std::string whole = small().bytes();
  for (std::size_t n = 0; n + 8 < whole.size(); ++n) EXPECT_NE(error_of(whole.substr(0, n)), "no error") << n;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const char c : {'\0', '\1', '\x7f', '\xff'}) {
      std::string changed = whole;
      changed[i] = c;
      error_of(changed);
    }
  }
}

TEST(GgufModel, TypesThatCannotBeReadAreThereWithoutData) {
  const auto file = parse(GgufBytes().tensor("t", 16, {256}, std::string(66, 'x')).bytes());
  EXPECT_TRUE(file->tensors()[0].data.empty());
  EXPECT_EQ(ggml_type_name(file->tensors()[0].type), "IQ2_XXS");
}

TEST(GgufModel, PartsOfASplitModel) {
  const testing::TemporaryFolder folder;
  const auto part = [](std::uint16_t no, const char* name) {
    GgufBytes b;
    b.number<std::uint16_t>("split.no", 2, no)
        .number<std::uint16_t>("split.count", 2, 2)
        .tensor(name, 0, {1}, std::string(4, 'a'));
    return b.bytes();
  };
  const auto first = folder.write("m-00001-of-00002.gguf", part(0, "one"));
  EXPECT_THROW(GgufModel::open(first), Error);  // the second is missing
  const auto second = folder.write("m-00002-of-00002.gguf", part(1, "two"));
  const auto file = GgufModel::open(first);
  EXPECT_EQ(file->find_tensor("one")->file, 0U);
  EXPECT_EQ(file->find_tensor("two")->file, 1U);
  EXPECT_EQ(file->paths().size(), 2U);
  EXPECT_THROW(GgufModel::open(second), Error);
}

}  // namespace
}  // namespace sdx
