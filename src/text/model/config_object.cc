#include "text/model/config_object.h"

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/mapped_file.h"
#include "tensor/json.h"

namespace sdx::text {

nlohmann::json read_json_file(const std::filesystem::path& path) {
  try {
    return parse_json(read_file(path, std::size_t{64} << 20), path.filename().string());
  } catch (const Error& e) {
    if (e.code() != ErrorCode::invalid_argument) throw;
    fail(ErrorCode::invalid_model, "'{}': {}", path.string(), e.message());
  }
}

ConfigObject::ConfigObject(const nlohmann::json& json, std::string shown) : json_(json), shown_(std::move(shown)) {
  if (!json.is_object()) fail(ErrorCode::invalid_model, "{} must be an object", shown_);
}

void ConfigObject::wrong(const std::string& key, const std::string& expected) const {
  fail(ErrorCode::invalid_model, "{} must be {}, received {}", shown(key), expected, json_.at(key).dump().substr(0, 100));
}

const nlohmann::json* ConfigObject::take(const std::string& key) {
  known_.insert(key);
  const auto it = json_.find(key);
  return it == json_.end() || it->is_null() ? nullptr : &*it;
}

std::optional<ConfigObject> ConfigObject::object(const std::string& key) {
  const nlohmann::json* v = take(key);
  if (v == nullptr) return std::nullopt;
  return ConfigObject(*v, shown(key));
}

std::optional<std::string> ConfigObject::text(const std::string& key) {
  const nlohmann::json* v = take(key);
  if (v == nullptr) return std::nullopt;
  if (!v->is_string()) wrong(key, "a text");
  return v->get<std::string>();
}

std::optional<std::int64_t> ConfigObject::integer(const std::string& key) {
  const nlohmann::json* v = take(key);
  if (v == nullptr) return std::nullopt;
  if (!v->is_number_integer() || (v->is_number_unsigned() && v->get<std::uint64_t>() >> 63 != 0)) wrong(key, "an integer");
  return v->get<std::int64_t>();
}

std::optional<float> ConfigObject::floating(const std::string& key) {
  const auto v = number(key);
  return v ? std::optional(static_cast<float>(*v)) : std::nullopt;
}

std::optional<double> ConfigObject::number(const std::string& key) {
  const nlohmann::json* v = take(key);
  if (v == nullptr) return std::nullopt;
  if (!v->is_number()) wrong(key, "a number");
  return v->get<double>();
}

std::optional<bool> ConfigObject::flag(const std::string& key) {
  const nlohmann::json* v = take(key);
  if (v == nullptr) return std::nullopt;
  if (!v->is_boolean()) wrong(key, "true or false");
  return v->get<bool>();
}

std::optional<TokenId> ConfigObject::token(const std::string& key) {
  const std::vector<TokenId> all = tokens(key);
  if (all.size() > 1) wrong(key, "one token");
  return all.empty() ? std::nullopt : std::optional(all[0]);
}

std::vector<TokenId> ConfigObject::tokens(const std::string& key) {
  const nlohmann::json* v = take(key);
  if (v == nullptr) return {};
  std::vector<TokenId> out;
  const auto add = [&](const nlohmann::json& id) {
    if (!id.is_number_integer()) wrong(key, "a token's number, or a list of them");
    const bool huge = id.is_number_unsigned() && id.get<std::uint64_t>() > 0xFFFFFFFFU;
    if (huge) wrong(key, "a token's number below 2^32");
    if (id.is_number_unsigned() || id.get<std::int64_t>() >= 0) out.push_back(static_cast<TokenId>(id.get<std::int64_t>()));
  };
  if (v->is_array()) {
    for (const nlohmann::json& id : *v) add(id);
  } else {
    add(*v);
  }
  return out;
}

void ConfigObject::skip(std::initializer_list<const char*> keys) { known_.insert(keys.begin(), keys.end()); }

void ConfigObject::refuse(const std::string& key, const nlohmann::json& harmless) {
  const nlohmann::json* v = take(key);
  if (v == nullptr || *v == harmless || (v->is_array() && v->empty()) || (v->is_object() && v->empty())) return;
  fail(ErrorCode::not_implemented, "{} = {} is not supported", shown(key), v->dump().substr(0, 100));
}

void ConfigObject::finish() const {
  for (const auto& [key, value] : json_.items()) {
    if (known_.contains(key)) continue;
    const std::vector<std::string> known(known_.begin(), known_.end());
    const std::string near = closest(key, known);
    fail(ErrorCode::invalid_model, "{} is not a known key{}", shown(key), near.empty() ? "" : "; did you mean '" + near + "'?");
  }
}

}  // namespace sdx::text
