#pragma once
// GGUF files made in memory, good and bad ones.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace sdx::test {

template <class T>
void append_raw(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

inline void append_gguf_string(std::string& out, std::string_view text) {
  append_raw<std::uint64_t>(out, text.size());
  out += text;
}

// Keys and tensors in the order in which they are added.
class GgufBytes {
 public:
  explicit GgufBytes(std::uint32_t version = 3) : version_(version) {}

  // `type` and the value's bytes as the format has them.
  GgufBytes& raw_key(std::string_view key, std::uint32_t type, std::string_view value) {
    append_gguf_string(keys_, key);
    append_raw(keys_, type);
    keys_ += value;
    ++key_count_;
    return *this;
  }
  template <class T>
  GgufBytes& number(std::string_view key, std::uint32_t type, T value) {
    std::string bytes;
    append_raw(bytes, value);
    return raw_key(key, type, bytes);
  }
  GgufBytes& u32(std::string_view key, std::uint32_t value) { return number(key, 4, value); }
  GgufBytes& f32(std::string_view key, float value) { return number(key, 6, value); }
  GgufBytes& flag(std::string_view key, bool value) { return number<std::uint8_t>(key, 7, value ? 1 : 0); }
  GgufBytes& text(std::string_view key, std::string_view value) {
    std::string bytes;
    append_gguf_string(bytes, value);
    return raw_key(key, 8, bytes);
  }
  GgufBytes& texts(std::string_view key, const std::vector<std::string>& values) {
    std::string bytes;
    append_raw<std::uint32_t>(bytes, 8);
    append_raw<std::uint64_t>(bytes, values.size());
    for (const std::string& v : values) append_gguf_string(bytes, v);
    return raw_key(key, 9, bytes);
  }
  template <class T>
  GgufBytes& numbers(std::string_view key, std::uint32_t element, const std::vector<T>& values) {
    std::string bytes;
    append_raw(bytes, element);
    append_raw<std::uint64_t>(bytes, values.size());
    for (const T v : values) append_raw(bytes, v);
    return raw_key(key, 9, bytes);
  }

  // `extents` innermost first, as in the file.
  GgufBytes& tensor(std::string_view name, std::uint32_t type, const std::vector<std::uint64_t>& extents, std::string_view data) {
    data_.resize((data_.size() + 31) / 32 * 32, '\0');
    tensor_at(name, type, extents, data_.size());
    data_ += data;
    return *this;
  }
  GgufBytes& tensor_at(std::string_view name, std::uint32_t type, const std::vector<std::uint64_t>& extents,
                       std::uint64_t offset) {
    append_gguf_string(infos_, name);
    append_raw(infos_, static_cast<std::uint32_t>(extents.size()));
    for (const std::uint64_t e : extents) append_raw(infos_, e);
    append_raw(infos_, type);
    append_raw(infos_, offset);
    ++tensor_count_;
    return *this;
  }

  std::string bytes() const {
    std::string out = "GGUF";
    append_raw(out, version_);
    append_raw(out, tensor_count_);
    append_raw(out, key_count_);
    out += keys_ + infos_;
    out.resize((out.size() + 31) / 32 * 32, '\0');
    return out + data_;
  }

 private:
  std::uint32_t version_;
  std::uint64_t key_count_ = 0, tensor_count_ = 0;
  std::string keys_, infos_, data_;
};

}  // namespace sdx::test
