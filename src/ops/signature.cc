#include "ops/signature.h"

#include "base/error.h"

namespace sdx::ops {
namespace {

// Null when missing; throws when the attribute is of another kind.
template <class T>
const std::vector<T>* find_list(const Attributes& attributes, std::string_view name,
                                std::vector<T> (Attributes::*get)(std::string_view) const) {
  const AttributeValue* value = attributes.find(name);
  if (value == nullptr) return nullptr;
  const auto* list = std::get_if<std::vector<T>>(value);
  if (list == nullptr) (attributes.*get)(name);  // it complains
  return list;
}

}  // namespace

void AttrReader::operator()(std::string_view name, std::int64_t& field) const { field = attributes_.get_int(name, field); }

void AttrReader::operator()(std::string_view name, bool& field) const { field = attributes_.get_int(name, field ? 1 : 0) != 0; }

void AttrReader::operator()(std::string_view name, float& field) const { field = attributes_.get_float(name, field); }

void AttrReader::operator()(std::string_view name, std::string_view& field) const {
  if (attributes_.has(name)) field = attributes_.get_string(name);
}

void AttrReader::operator()(std::string_view name, IntList& field) const {
  if (const auto* list = find_list(attributes_, name, &Attributes::get_ints)) field = *list;
}

void AttrReader::operator()(std::string_view name, FloatList& field) const {
  if (const auto* list = find_list(attributes_, name, &Attributes::get_floats)) field = *list;
}

void AttrReader::operator()(std::string_view name, StringList& field) const {
  if (const auto* list = find_list(attributes_, name, &Attributes::get_strings)) field = *list;
}

void AttrReader::operator()(std::string_view name, const Tensor*& field) const {
  if (attributes_.has(name)) field = &attributes_.get_tensor(name);
}

void AttrReader::either(std::string_view name, std::int64_t& number, std::string_view& word) const {
  require(name);
  if (std::holds_alternative<std::string>(*attributes_.find(name))) {
    (*this)(name, word);
  } else {
    (*this)(name, number);
  }
}

void AttrReader::require(std::string_view name) const {
  if (!attributes_.has(name)) fail(ErrorCode::invalid_model, "required attribute '{}' is missing", name);
}

void AttrDeclarer::add(std::string_view name, AttrKind kind, bool required) const {
  out_.push_back({std::string(name), kind, required});
}

}  // namespace sdx::ops
