// Templates from standard input, one JSON object a line: {"template": text, "context": object}. Writes {"text": …} or
// {"error": …, "type": …} for each. What the tests with Jinja2 and with recorded answers drive.

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "text/template/from_json.h"
#include "text/template/interpreter.h"

namespace {

using nlohmann::ordered_json;
using sdx::text::jinja::PyError;

const char* type_of(const PyError& error) {
  switch (error.type()) {
    case PyError::Type::raised: return "TemplateError";
    case PyError::Type::limit: return "limit";
    case PyError::Type::syntax: return "TemplateSyntaxError";
    case PyError::Type::undefined: return "UndefinedError";
    case PyError::Type::security: return "SecurityError";
    case PyError::Type::type: return "TypeError";
    default: return "other";
  }
}

ordered_json answer(const std::string& line) {
  try {
    sdx::text::jinja::Program program;
    sdx::text::jinja::Interpreter interpreter(program, std::size_t{16} << 20);
    const auto request = parse_json(interpreter, line);
    program = sdx::text::jinja::parse(find(request.dict(), "template")->text(), "template");
    interpreter.now.time.tm_year = 126;  // Friday, 2026-01-02 03:04:05
    interpreter.now.time.tm_mday = 2;
    interpreter.now.time.tm_wday = 5;
    interpreter.now.time.tm_yday = 1;
    interpreter.now.time.tm_hour = 3;
    interpreter.now.time.tm_min = 4;
    interpreter.now.time.tm_sec = 5;
    for (const auto& [name, value] : find(request.dict(), "context")->dict().items) interpreter.variables[name.text()] = value;
    return {{"text", interpreter.render()}};
  } catch (const PyError& error) {
    return {{"error", error.message()}, {"type", type_of(error)}};
  }
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << answer(line).dump(-1, ' ', true, ordered_json::error_handler_t::replace) << '\n';
    if (std::cin.rdbuf()->in_avail() == 0) std::cout.flush();
  }
}
