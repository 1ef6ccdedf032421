#pragma once
// The page's JSON.

#include <nlohmann/json.hpp>
#include <string_view>

#include "vision/page/store.h"

namespace sdx::faces::page {

// Parses `body`, which must be an object. Throws Error(invalid_argument).
nlohmann::json parse_object(std::string_view body);
// Reads the values of `settings`; unknown names and wrong types are errors. `others`: further names that are allowed.
CropSettings crop_settings(const nlohmann::json& settings, std::initializer_list<std::string_view> others);

const char* runtime_name(Runtime runtime);
// "native" or "ort". Throws Error(invalid_argument).
Runtime parse_runtime(std::string_view name);

nlohmann::json preset_json(const Preset& preset);
// A picture as in `sdx faces detect --json`, with "id" and with "latency_ms": the time of each runtime that processed it.
nlohmann::json picture_json(Picture& picture, const Looked& looked);

}  // namespace sdx::faces::page
