#include "text/template/from_json.h"

#include "text/utf8.h"

namespace sdx::text::jinja {

Value from_json(Runtime& rt, const nlohmann::ordered_json& json) {
  const Deeper deeper(rt, 4);
  switch (json.type()) {
    case nlohmann::ordered_json::value_t::boolean: return Value::boolean(json.get<bool>());
    case nlohmann::ordered_json::value_t::number_integer: return Value::integer(json.get<std::int64_t>());
    case nlohmann::ordered_json::value_t::number_unsigned: return Value::integer(json.get<std::uint64_t>());
    case nlohmann::ordered_json::value_t::number_float: return Value::real(json.get<double>());
    case nlohmann::ordered_json::value_t::string: {
      const auto& text = json.get_ref<const std::string&>();
      if (valid_utf8(text) != text.size()) value_error("a text that is not valid UTF-8");
      return rt.str(text);
    }
    case nlohmann::ordered_json::value_t::array: {
      Values items;
      items.reserve(json.size());
      for (const auto& item : json) items.push_back(from_json(rt, item));
      return rt.list(std::move(items));
    }
    case nlohmann::ordered_json::value_t::object: {
      std::vector<std::pair<Value, Value>> items;
      items.reserve(json.size());
      for (const auto& [name, item] : json.items()) items.emplace_back(rt.str(name), from_json(rt, item));
      return rt.dict(std::move(items));
    }
    default: return {};
  }
}

}  // namespace sdx::text::jinja
