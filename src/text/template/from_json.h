#pragma once
// JSON to values.

#include <nlohmann/json.hpp>

#include "text/template/runtime.h"

namespace sdx::text::jinja {

Value from_json(Runtime& rt, const nlohmann::ordered_json& json);

}  // namespace sdx::text::jinja
