// strftime, as Python's datetime has it.

#include <fmt/format.h>

#include <ctime>
#include <string>
#include <string_view>

#include "text/template/runtime.h"

namespace sdx::text::jinja {

std::string format_time(const Now& now, std::string_view format) {
  if (format.size() > 10000) value_error("strftime_now: a format of more than 10000 bytes");
  std::string result;
  for (std::size_t at = 0; at < format.size(); at++) {
    if (format[at] != '%' || at + 1 >= format.size()) {
      result += format[at];
      continue;
    }
    std::string code = "%";
    for (at++; at < format.size() && std::string_view("-_0^#").find(format[at]) != std::string_view::npos && code.size() < 4;
         at++)
      code += format[at];
    if (at >= format.size()) {
      result += code;
      break;
    }
    code += format[at];
    if (format[at] == 'f') {
      result += fmt::format("{:06}", now.microseconds);
    } else if (format[at] != 'z' && format[at] != 'Z') {  // a time without a zone
      char buffer[256];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
      result.append(buffer, std::strftime(buffer, sizeof buffer, code.c_str(), &now.time));
#pragma GCC diagnostic pop
    }
  }
  return result;
}

}  // namespace sdx::text::jinja
