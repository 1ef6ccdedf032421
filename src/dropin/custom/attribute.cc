#include "dropin/custom/attribute.h"

#include <cstring>
#include <memory>
#include <vector>

#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {
namespace {

using Strings = std::vector<std::string>;

AttributeValue read_value(const void* data, int length, OrtOpAttrType type) {
  if (length < 0 || (data == nullptr && length != 0)) fail_ort(ORT_INVALID_ARGUMENT, "attribute: data must not be NULL");
  const auto n = static_cast<std::size_t>(length);
  const auto scalar = [&](auto zero) {
    if (data == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "attribute: data must not be NULL");
    std::memcpy(&zero, data, sizeof zero);
    return AttributeValue(zero);
  };
  const auto list = [&](auto zero) {
    std::vector<decltype(zero)> values(n);
    if (n != 0) std::memcpy(values.data(), data, n * sizeof zero);
    return AttributeValue(std::move(values));
  };
  switch (type) {
    case ORT_OP_ATTR_INT: return scalar(std::int64_t{0});
    case ORT_OP_ATTR_INTS: return list(std::int64_t{0});
    case ORT_OP_ATTR_FLOAT: return scalar(0.0F);
    case ORT_OP_ATTR_FLOATS: return list(0.0F);
    case ORT_OP_ATTR_STRING: return n == 0 ? std::string() : std::string(static_cast<const char*>(data), n);
    case ORT_OP_ATTR_STRINGS: {
      Strings texts;
      for (std::size_t i = 0; i < n; ++i) texts.emplace_back(&require(static_cast<const char* const*>(data)[i], "a string"));
      return texts;
    }
    case ORT_OP_ATTR_UNDEFINED:
    case ORT_OP_ATTR_GRAPH:
    case ORT_OP_ATTR_TENSOR: break;
  }
  fail_ort(ORT_INVALID_ARGUMENT, "Attribute type not supported.");
}

OrtStatus* create(const char* name, const void* data, int length, OrtOpAttrType type, OrtOpAttr** out) noexcept {
  return guarded([&] {
    require(out, "op_attr") = nullptr;
    auto made = std::make_unique<OrtOpAttr>(OrtOpAttr{&require(name, "name"), read_value(data, length, type)});
    *out = made.release();
  });
}

void release(OrtOpAttr* attribute) noexcept { delete attribute; }

// Bytes that a value takes, as ReadOpAttr hands it out; `to` null: only that.
struct Copied {
  std::size_t bytes;
  const char* too_small;
  void (*copy)(const AttributeValue& value, void* to);
};

template <class T>
void copy_scalar(const AttributeValue& value, void* to) {
  std::memcpy(to, &std::get<T>(value), sizeof(T));
}
template <class T>
void copy_list(const AttributeValue& value, void* to) {
  const auto& list = std::get<T>(value);
  if (!list.empty()) std::memcpy(to, list.data(), list.size() * sizeof(*list.data()));
}
void copy_strings(const AttributeValue& value, void* to) {
  char* at = static_cast<char*>(to);
  for (const std::string& s : std::get<Strings>(value)) {
    std::memcpy(at, s.c_str(), s.size() + 1);
    at += s.size() + 1;
  }
}

template <class T>
const T& held(const OrtOpAttr& attribute, const char* what) {
  const T* value = std::get_if<T>(&attribute.value);
  if (value == nullptr) fail_ort(ORT_INVALID_ARGUMENT, std::string("Attribute has no ") + what + " value.");
  return *value;
}

Copied plan(const OrtOpAttr& a, OrtOpAttrType type) {
  using Ints = std::vector<std::int64_t>;
  using Floats = std::vector<float>;
  switch (type) {
    case ORT_OP_ATTR_INT: held<std::int64_t>(a, "int64"); return {sizeof(std::int64_t), "an int64.", copy_scalar<std::int64_t>};
    case ORT_OP_ATTR_FLOAT: held<float>(a, "float"); return {sizeof(float), "a float.", copy_scalar<float>};
    case ORT_OP_ATTR_INTS: return {held<Ints>(a, "ints").size() * sizeof(std::int64_t), "the array of int64.", copy_list<Ints>};
    case ORT_OP_ATTR_FLOATS: return {held<Floats>(a, "floats").size() * sizeof(float), "the array of floats.", copy_list<Floats>};
    case ORT_OP_ATTR_STRING: return {held<std::string>(a, "string").size(), "the string.", copy_list<std::string>};
    case ORT_OP_ATTR_STRINGS: {
      std::size_t bytes = 0;
      for (const std::string& s : held<Strings>(a, "strings")) bytes += s.size() + 1;
      return {bytes, "the array of strings.", copy_strings};
    }
    case ORT_OP_ATTR_UNDEFINED:
    case ORT_OP_ATTR_GRAPH:
    case ORT_OP_ATTR_TENSOR: break;
  }
  fail_ort(ORT_INVALID_ARGUMENT, "Unexpected attribute type. ");
}

OrtStatus* read(const OrtOpAttr* attribute, OrtOpAttrType type, void* data, std::size_t length, std::size_t* out) noexcept {
  return guarded([&] {
    if (attribute == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "Invalid attribute.");
    require(out, "out") = 0;
    const Copied part = plan(*attribute, type);
    *out = part.bytes;
    if (length < part.bytes)
      fail_ort(ORT_INVALID_ARGUMENT, std::string("Size of data not large enough to hold ") + part.too_small);
    if (part.bytes != 0) part.copy(attribute->value, &require(static_cast<char*>(data), "data"));
  });
}

OrtStatus* get_type(const OrtOpAttr* attribute, OrtOpAttrType* out) noexcept {
  return guarded([&] { require(out, "type") = attribute_type(require(attribute, "attribute").value); });
}

OrtStatus* get_name(const OrtOpAttr* attribute, const char** out) noexcept {
  return guarded([&] { require(out, "name") = require(attribute, "attribute").name.c_str(); });
}

}  // namespace

OrtOpAttrType attribute_type(const AttributeValue& value) noexcept {
  static constexpr OrtOpAttrType kTypes[] = {ORT_OP_ATTR_INT,  ORT_OP_ATTR_FLOAT,  ORT_OP_ATTR_STRING, ORT_OP_ATTR_TENSOR,
                                             ORT_OP_ATTR_INTS, ORT_OP_ATTR_FLOATS, ORT_OP_ATTR_STRINGS};
  return value.index() < std::size(kTypes) ? kTypes[value.index()] : ORT_OP_ATTR_UNDEFINED;
}

void copy_text(const std::string& text, char* out, std::size_t* size, const char* what) {
  const std::size_t given = require(size, "size");
  *size = text.size() + 1;
  if (out == nullptr) return;
  if (given < text.size() + 1) fail_ort(ORT_INVALID_ARGUMENT, what);
  std::memcpy(out, text.c_str(), text.size() + 1);
}

void fill_attributes(Table& table) {
  table.set(Slot::CreateOpAttr, &create);
  table.set(Slot::ReleaseOpAttr, &release);
  table.set(Slot::ReadOpAttr, &read);
  table.set(Slot::OpAttr_GetType, &get_type);
  table.set(Slot::OpAttr_GetName, &get_name);
}

}  // namespace sdx::dropin
