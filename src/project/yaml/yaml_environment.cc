// ${NAME} and ${NAME:-default} in values.

#include <fmt/format.h>

#include <cstdlib>

#include "base/error.h"
#include "project/yaml/yaml_node.h"

namespace sdx {
namespace {

constexpr std::size_t kLongest = std::size_t{1} << 20;

bool is_name(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (const char c : text) {
    if (!(c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) return false;
  }
  return true;
}

void expand(YamlNode& node, const std::string& file) {
  std::string out;
  std::size_t at = 0;
  while (true) {
    const std::size_t open = node.text.find("${", at);
    const std::size_t close = open == std::string::npos ? open : node.text.find('}', open);
    if (close == std::string::npos) break;
    const std::string_view inside = std::string_view(node.text).substr(open + 2, close - open - 2);
    const std::size_t dash = inside.find(":-");
    const std::string name(inside.substr(0, dash));
    if (!is_name(name)) {
      fail(ErrorCode::invalid_argument, "{}:{}:{}: '${{{}}}' names no environment variable", file, node.line, node.column,
           inside);
    }
    const char* value = std::getenv(name.c_str());
    const bool set = value != nullptr && *value != '\0';
    if (!set && dash == std::string_view::npos) {
      fail(ErrorCode::invalid_argument, "{}:{}:{}: the environment variable {} is not set; ${{{}:-default}} gives a default",
           file, node.line, node.column, name, name);
    }
    out += node.text.substr(at, open - at);
    out += set ? std::string_view(value) : inside.substr(dash + 2);
    if (out.size() > kLongest) fail(ErrorCode::invalid_argument, "{}:{}:{}: the value is too long", file, node.line, node.column);
    at = close + 1;
  }
  if (at != 0) node.text = out + node.text.substr(at);
}

void expand_all(YamlNode& node, const std::string& file) {
  if (node.kind == YamlKind::scalar) expand(node, file);
  for (YamlNode& item : node.items) expand_all(item, file);
  for (YamlEntry& entry : node.entries) expand_all(entry.value, file);
}

}  // namespace

void YamlDocument::expand_environment() { expand_all(*root_, *name_); }

}  // namespace sdx
