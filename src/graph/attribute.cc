#include "graph/attribute.h"

#include <algorithm>

#include "base/error.h"

namespace sdx {
namespace {

constexpr std::string_view kKinds[] = {"int",    "float",   "string",  "tensor", "ints",
                                       "floats", "strings", "tensors", "type",   "types"};

template <class T>
const T* find_as(const Attributes& attributes, std::string_view attribute) {
  const AttributeValue* value = attributes.find(attribute);
  if (value == nullptr) return nullptr;
  if (const T* typed = std::get_if<T>(value)) return typed;
  fail(ErrorCode::invalid_model, "attribute '{}' must be of type {}, received {}", attribute, kKinds[AttributeValue(T{}).index()],
       kind_name(*value));
}

template <class T>
const T& require(const Attributes& attributes, std::string_view attribute) {
  if (const T* value = find_as<T>(attributes, attribute)) return *value;
  fail(ErrorCode::invalid_model, "required attribute '{}' is missing", attribute);
}

}  // namespace

std::string_view kind_name(const AttributeValue& value) { return kKinds[value.index()]; }

const AttributeValue* Attributes::find(std::string_view name) const {
  for (const auto& [key, value] : items_) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Attributes::set(std::string name, AttributeValue value) {
  for (auto& [key, old] : items_) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  items_.emplace_back(std::move(name), std::move(value));
}

void Attributes::erase(std::string_view name) {
  std::erase_if(items_, [&](const auto& item) { return item.first == name; });
}

std::int64_t Attributes::get_int(std::string_view name) const { return require<std::int64_t>(*this, name); }

std::int64_t Attributes::get_int(std::string_view name, std::int64_t otherwise) const {
  const auto* value = find_as<std::int64_t>(*this, name);
  return value != nullptr ? *value : otherwise;
}

float Attributes::get_float(std::string_view name) const {
  if (!has(name)) fail(ErrorCode::invalid_model, "required attribute '{}' is missing", name);
  return get_float(name, 0.0F);
}

float Attributes::get_float(std::string_view name, float otherwise) const {
  const AttributeValue* value = find(name);
  if (value == nullptr) return otherwise;
  if (const auto* i = std::get_if<std::int64_t>(value)) return static_cast<float>(*i);
  return require<float>(*this, name);
}

const std::string& Attributes::get_string(std::string_view name) const { return require<std::string>(*this, name); }

std::string Attributes::get_string(std::string_view name, std::string_view otherwise) const {
  const auto* value = find_as<std::string>(*this, name);
  return value != nullptr ? *value : std::string(otherwise);
}

const Tensor& Attributes::get_tensor(std::string_view name) const { return require<Tensor>(*this, name); }

std::vector<std::int64_t> Attributes::get_ints(std::string_view name) const {
  const auto* value = find_as<std::vector<std::int64_t>>(*this, name);
  return value != nullptr ? *value : std::vector<std::int64_t>{};
}

std::vector<float> Attributes::get_floats(std::string_view name) const {
  const auto* value = find_as<std::vector<float>>(*this, name);
  return value != nullptr ? *value : std::vector<float>{};
}

std::vector<std::string> Attributes::get_strings(std::string_view name) const {
  const auto* value = find_as<std::vector<std::string>>(*this, name);
  return value != nullptr ? *value : std::vector<std::string>{};
}

}  // namespace sdx
