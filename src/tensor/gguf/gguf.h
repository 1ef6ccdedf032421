#pragma once
// GGUF files: the metadata before the tensors. Values are views into the file. Specification: ggml/docs/gguf.md, versions 2
// and 3.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/system/mapped_file.h"
#include "base/tools_api.h"

namespace sdx {

enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

struct GgufValue {
  std::string_view key;
  GgufType type = GgufType::u8;
  GgufType element = GgufType::u8;  // of an array
  std::uint64_t count = 1;          // elements of an array
  std::size_t begin = 0, end = 0;   // bytes of the file
};

class SDX_TOOLS_API GgufFile {
 public:
  // Throws Error(io); Error(invalid_model) with the place in the file.
  static GgufFile open(const std::filesystem::path& path);
  // The bytes must outlive it.
  explicit GgufFile(std::span<const std::byte> bytes);

  const std::vector<GgufValue>& values() const noexcept { return values_; }
  const GgufValue* find(std::string_view key) const noexcept;
  std::uint64_t tensor_count() const noexcept { return tensors_; }
  // The position of the tensors' descriptions.
  std::size_t tensors_at() const noexcept { return at_; }

  // Nothing where there is no such key. Throw Error(invalid_model) where it is of another type.
  std::optional<std::string_view> text(std::string_view key) const;
  std::optional<std::uint64_t> whole(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> truth(std::string_view key) const;
  std::optional<std::vector<std::string_view>> texts(std::string_view key) const;
  std::optional<std::vector<double>> numbers(std::string_view key) const;
  // An array of bytes, as they are.
  std::optional<std::string_view> bytes(std::string_view key) const;

 private:
  std::string_view take(std::uint64_t size, std::string_view what);
  std::uint64_t take_whole(std::size_t size, std::string_view what);
  std::string_view take_text(std::string_view what);
  GgufType take_type(std::string_view what);
  void take_value(GgufValue& value);
  void skip(GgufType type, std::uint64_t count, std::string_view key);
  double number_at(GgufType type, std::size_t at) const;
  const GgufValue* array(std::string_view key) const;

  std::shared_ptr<const MappedFile> file_;
  std::string_view data_;
  std::size_t at_ = 0;
  std::uint64_t tensors_ = 0;
  std::vector<GgufValue> values_;
};

}  // namespace sdx
