// Values as text: str(), repr(), JSON.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text/utf8.h"
#include "text/template/runtime.h"
#include "text/template/unicode.h"

namespace sdx::text::jinja {

std::string repr_int(Int value) {
  if (value == 0) return "0";
  char digits[48];
  char* at = digits + sizeof digits;
  const bool negative = value < 0;
  auto rest = negative ? -static_cast<UInt>(value) : static_cast<UInt>(value);
  for (; rest != 0; rest /= 10) *--at = static_cast<char>('0' + static_cast<int>(rest % 10));
  if (negative) *--at = '-';
  return std::string(at, digits + sizeof digits);
}

std::string repr_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view scientific(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t e = scientific.find('e');
  const int exponent = std::stoi(std::string(scientific.substr(e + 1)));
  if (exponent < -4 || exponent >= 16) {
    std::string result(scientific.substr(0, e));
    return result + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  char fixed[64];
  const auto fixed_end = std::to_chars(fixed, fixed + sizeof fixed, value, std::chars_format::fixed).ptr;
  std::string result(fixed, fixed_end);
  if (result.find('.') == std::string::npos) result += ".0";
  return result;
}

void append_quoted(std::string& to, std::string_view text) {
  const char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  to += quote;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    const char32_t c = point.value;
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      to += '\\';
      to += static_cast<char>(c);
    } else if (c == '\n') {
      to += "\\n";
    } else if (c == '\r') {
      to += "\\r";
    } else if (c == '\t') {
      to += "\\t";
    } else if (c < 0x20 || c == 0x7f) {
      to += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else if (c < 0x80 || is_printable(c)) {
      to.append(text.substr(at, point.bytes));
    } else {
      const auto code = static_cast<unsigned>(c);
      to += c < 0x100     ? fmt::format("\\x{:02x}", code)
            : c < 0x10000 ? fmt::format("\\u{:04x}", code)
                          : fmt::format("\\U{:08x}", code);
    }
    at += point.bytes ? point.bytes : 1;
  }
  to += quote;
}

namespace {

void append_repr(Runtime& rt, std::string& to, const Value& value);

void append_items(Runtime& rt, std::string& to, const Values& items, const char* open, const char* close) {
  to += open;
  for (std::size_t i = 0; i < items.size(); i++) {
    if (i) to += ", ";
    append_repr(rt, to, items[i]);
  }
  to += close;
}

void append_pairs(Runtime& rt, std::string& to, const std::vector<std::pair<Value, Value>>& items, const char* between) {
  for (std::size_t i = 0; i < items.size(); i++) {
    if (i) to += ", ";
    append_repr(rt, to, items[i].first);
    to += between;
    append_repr(rt, to, items[i].second);
  }
}

void append_view(Runtime& rt, std::string& to, const View& view) {
  const auto& items = view.of.dict().items;
  to += view.what == View::What::keys ? "dict_keys([" : view.what == View::What::values ? "dict_values([" : "dict_items([";
  for (std::size_t i = 0; i < items.size(); i++) {
    if (i) to += ", ";
    if (view.what == View::What::items) {
      to += '(';
      append_repr(rt, to, items[i].first);
      to += ", ";
      append_repr(rt, to, items[i].second);
      to += ')';
    } else {
      append_repr(rt, to, view.what == View::What::keys ? items[i].first : items[i].second);
    }
  }
  to += "])";
}

void append_range(std::string& to, const Range& range) {
  to += "range(" + repr_int(range.start) + ", " + repr_int(range.stop);
  if (range.step != 1) to += ", " + repr_int(range.step);
  to += ')';
}

void append_namespace(Runtime& rt, std::string& to, const Namespace& space) {
  to += "<Namespace {";
  for (std::size_t i = 0; i < space.attributes.size(); i++) {
    if (i) to += ", ";
    append_quoted(to, space.attributes[i].first);
    to += ": ";
    append_repr(rt, to, space.attributes[i].second);
  }
  to += "}>";
}

void append_repr(Runtime& rt, std::string& to, const Value& value) {
  rt.step();
  const Deeper deeper(rt);
  rt.budget.reserve(to.size());
  switch (value.kind()) {
    case Kind::undefined: to += "Undefined"; return;
    case Kind::string:
      rt.work(value.text().size());
      if (value.str().markup) to += "Markup(";
      append_quoted(to, value.text());
      if (value.str().markup) to += ')';
      return;
    case Kind::list: append_items(rt, to, value.sequence().items, "[", "]"); return;
    case Kind::tuple: append_items(rt, to, value.sequence().items, "(", value.sequence().items.size() == 1 ? ",)" : ")"); return;
    case Kind::dict:
      to += '{';
      append_pairs(rt, to, value.dict().items, ": ");
      to += '}';
      return;
    case Kind::view: append_view(rt, to, value.object<View>()); return;
    case Kind::range: append_range(to, value.object<Range>()); return;
    case Kind::name_space: append_namespace(rt, to, value.object<Namespace>()); return;
    default: append_text(rt, to, value);
  }
}

}  // namespace

void append_text(Runtime& rt, std::string& to, const Value& value) {
  switch (value.kind()) {
    case Kind::undefined: return;
    case Kind::none: to += "None"; return;
    case Kind::boolean: to += value.as_int() ? "True" : "False"; return;
    case Kind::integer: to += repr_int(value.as_int()); return;
    case Kind::real: to += repr_real(value.as_real()); return;
    case Kind::string:
      rt.work(value.text().size());
      to += value.text();
      return;
    case Kind::iterator: to += std::string("<") + value.object<Iterator>().type + " object>"; return;
    case Kind::function: to += std::string("<function ") + value.object<Function>().name + ">"; return;
    case Kind::macro:
    case Kind::loop: {
      const auto text = get_attribute(rt, value, "__repr__");
      to += text.text();
      return;
    }
    case Kind::cycler: to += "<Cycler object>"; return;
    case Kind::joiner: to += "<Joiner object>"; return;
    default: append_repr(rt, to, value);
  }
}

std::string to_text(Runtime& rt, const Value& value) {
  std::string text;
  append_text(rt, text, value);
  return text;
}

std::string repr(Runtime& rt, const Value& value) {
  std::string text;
  append_repr(rt, text, value);
  return text;
}

std::string escape_html(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&#34;"; break;
      case '\'': result += "&#39;"; break;
      default: result += c;
    }
  }
  return result;
}

Value escaped(Runtime& rt, const Value& value) {
  if (value.is_string() && value.str().markup) return value;
  return rt.str(escape_html(to_text(rt, value)), true);
}

// ---- JSON, as json.dumps writes it
namespace {

struct JsonWriter {
  Runtime& rt;
  std::string indent;  // of one level
  bool pretty = false;
  std::string item_separator, key_separator;
  bool sort_keys = false, ascii = false;
  std::string out = {};

  void write(const Value& value, std::size_t level);
  void write_string(std::string_view text);
  void write_key(const Value& key);
  void write_list(const Values& items, std::size_t level);
  void write_dict(const Dict& dict, std::size_t level);
  void new_line(std::size_t level) {
    if (!pretty) return;
    out += '\n';
    for (std::size_t i = 0; i < level; i++) out += indent;
    rt.budget.reserve(out.size());
    rt.work(level * indent.size());
  }
};

std::string json_real(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return repr_real(value);
}

void append_escape(std::string& to, char32_t c) {
  if (c < 0x10000) {
    to += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  } else {
    const auto rest = static_cast<unsigned>(c - 0x10000);
    to += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
  }
}

void JsonWriter::write_string(std::string_view text) {
  rt.work(text.size());
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (ascii && static_cast<unsigned char>(c) >= 0x7f) {
      const CodePoint point = decode_utf8(text, at);
      if (point.value == 0x7f) {
        out += c;
      } else {
        append_escape(out, point.value);
      }
      at += point.bytes ? point.bytes : 1;
      continue;
    }
    at++;
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\f': out += "\\f"; break;
      case '\b': out += "\\b"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          append_escape(out, static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void JsonWriter::write_key(const Value& key) {
  switch (key.kind()) {
    case Kind::string: return write_string(key.text());
    case Kind::boolean: out += key.as_int() ? "\"true\"" : "\"false\""; return;
    case Kind::none: out += "\"null\""; return;
    case Kind::integer: out += '"' + repr_int(key.as_int()) + '"'; return;
    case Kind::real: out += '"' + json_real(key.as_real()) + '"'; return;
    default: type_error(std::string("keys must be str, int, float, bool or None, not ") + type_name(key));
  }
}

void JsonWriter::write_list(const Values& items, std::size_t level) {
  if (items.empty()) {
    out += "[]";
    return;
  }
  out += '[';
  for (std::size_t i = 0; i < items.size(); i++) {
    if (i) out += item_separator;
    new_line(level + 1);
    write(items[i], level + 1);
  }
  new_line(level);
  out += ']';
}

void JsonWriter::write_dict(const Dict& dict, std::size_t level) {
  if (dict.items.empty()) {
    out += "{}";
    return;
  }
  std::vector<const std::pair<Value, Value>*> items;
  for (const auto& item : dict.items) items.push_back(&item);
  if (sort_keys) {
    std::stable_sort(items.begin(), items.end(), [this](const auto* a, const auto* b) { return less(rt, a->first, b->first); });
  }
  out += '{';
  for (std::size_t i = 0; i < items.size(); i++) {
    if (i) out += item_separator;
    new_line(level + 1);
    write_key(items[i]->first);
    out += key_separator;
    write(items[i]->second, level + 1);
  }
  new_line(level);
  out += '}';
}

void JsonWriter::write(const Value& value, std::size_t level) {
  rt.step();
  const Deeper deeper(rt);
  rt.budget.reserve(out.size());
  switch (value.kind()) {
    case Kind::none: out += "null"; return;
    case Kind::boolean: out += value.as_int() ? "true" : "false"; return;
    case Kind::integer: out += repr_int(value.as_int()); return;
    case Kind::real: out += json_real(value.as_real()); return;
    case Kind::string: write_string(value.text()); return;
    case Kind::list:
    case Kind::tuple: write_list(value.sequence().items, level); return;
    case Kind::dict: write_dict(value.dict(), level); return;
    default: type_error(std::string("Object of type ") + type_name(value) + " is not JSON serializable");
  }
}

}  // namespace

std::string to_json(Runtime& rt, const Value& value, const Value& indent, const Value& item_separator, const Value& key_separator,
                    bool sort_keys, bool ascii) {
  JsonWriter writer{.rt = rt, .indent = {}, .item_separator = ", ", .key_separator = ": "};
  if (!indent.is_none()) {
    writer.pretty = true;
    writer.item_separator = ",";
    if (indent.is_string()) {
      writer.indent = indent.text();
    } else {
      const Int width = index_of(indent);
      if (width > 1000) limit_error("tojson: an indent of more than 1000");
      writer.indent.assign(static_cast<std::size_t>(std::max<Int>(width, 0)), ' ');
    }
  }
  if (!item_separator.is_none()) writer.item_separator = to_text(rt, item_separator);
  if (!key_separator.is_none()) writer.key_separator = to_text(rt, key_separator);
  writer.sort_keys = sort_keys;
  writer.ascii = ascii;
  writer.write(value, 0);
  return std::move(writer.out);
}

}  // namespace sdx::text::jinja
