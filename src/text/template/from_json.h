#pragma once
// JSON text to values: integers of up to 127 bits stay exact, objects keep their order.

#include <string_view>

#include "text/template/runtime.h"

namespace sdx::text::jinja {

// Throws PyError: `value` for text that is not JSON, `limit` for text that is too deep or too large.
Value parse_json(Runtime& rt, std::string_view text);

}  // namespace sdx::text::jinja
