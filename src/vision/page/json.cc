#include "vision/page/json.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "vision/names.h"

namespace sdx::faces::page {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestText = 1000;

std::string text(const json& value, std::string_view name) {
  if (!value.is_string() || value.get_ref<const std::string&>().size() > kLongestText) {
    fail(ErrorCode::invalid_argument, "'{}' must be a text", name);
  }
  return value.get<std::string>();
}

double number(const json& value, std::string_view name) {
  if (!value.is_number() || !std::isfinite(value.get<double>())) fail(ErrorCode::invalid_argument, "'{}' must be a number", name);
  return value.get<double>();
}

int whole(const json& value, std::string_view name) {
  const double n = number(value, name);
  if (n != std::floor(n) || std::fabs(n) > 1e9) fail(ErrorCode::invalid_argument, "'{}' must be a whole number", name);
  return static_cast<int>(n);
}

void read_setting(CropSettings& out, std::string_view name, const json& value) {
  if (name == "preset") {
    out.preset = text(value, name);
  } else if (name == "position") {
    out.position = text(value, name);
  } else if (name == "fill") {
    out.fill = text(value, name);
  } else if (name == "shape") {
    out.shape = text(value, name);
  } else if (name == "enhance") {
    out.enhance = text(value, name);
  } else if (name == "format") {
    out.format = text(value, name);
  } else if (name == "width") {
    out.width = whole(value, name);
  } else if (name == "height") {
    out.height = whole(value, name);
  } else if (name == "quality") {
    out.quality = whole(value, name);
  } else if (name == "face_height") {
    out.face_height = number(value, name);
  } else if (name == "offset_x") {
    out.offset_x = number(value, name);
  } else if (name == "offset_y") {
    out.offset_y = number(value, name);
  } else if (name == "radius") {
    out.radius = number(value, name);
  } else if (name == "align_eyes") {
    if (!value.is_boolean()) fail(ErrorCode::invalid_argument, "'align_eyes' must be true or false");
    out.align_eyes = value.get<bool>();
  } else {
    fail(ErrorCode::invalid_argument, "a crop has no setting '{}'", name);
  }
}

double tidy(double value) { return std::round(value * 1000) / 1000; }

json point_json(const std::optional<Point>& point) { return point ? json{tidy(point->x), tidy(point->y)} : json(); }

json points_json(const Points& points) {
  json out = json::object();
  for (const auto& [name, member] : vision::kPoints) {
    if (points.*member) out[name] = point_json(points.*member);
  }
  return out;
}

json quality_json(const Quality& quality) {
  const auto angle = [](const std::optional<double>& value) { return value ? json(tidy(*value)) : json(); };
  return {{"level", vision::word_of(vision::kLevels, quality.level)},
          {"sharpness", tidy(quality.sharpness)},
          {"exposure", tidy(quality.exposure)},
          {"size_px", tidy(quality.size_px)},
          {"yaw", angle(quality.yaw)},
          {"pitch", angle(quality.pitch)},
          {"roll", angle(quality.roll)}};
}

json times_json(const StageTimes& times) {
  return {{"preprocess", tidy(times.preprocess)}, {"inference", tidy(times.inference)}, {"postprocess", tidy(times.decode)}};
}

}  // namespace

json parse_object(std::string_view body) {
  json document = json::parse(body, nullptr, false);
  if (!document.is_object()) fail(ErrorCode::invalid_argument, "the request's body must be a JSON object");
  return document;
}

CropSettings crop_settings(const json& settings, std::initializer_list<std::string_view> others) {
  CropSettings out;
  for (const auto& [name, value] : settings.items()) {
    if (std::find(others.begin(), others.end(), name) != others.end() || value.is_null()) continue;
    read_setting(out, name, value);
  }
  return out;
}

const char* runtime_name(Runtime runtime) { return runtime == Runtime::ort ? "ort" : "native"; }

Runtime parse_runtime(std::string_view name) {
  if (name == "native") return Runtime::native;
  if (name == "ort") return Runtime::ort;
  fail(ErrorCode::invalid_argument, "unknown runtime '{}'; runtimes: native, ort", name);
}

json preset_json(const Preset& preset) {
  const CropOptions& o = preset.options;
  return {{"name", preset.name},
          {"description", preset.description},
          {"width", o.width},
          {"height", o.height},
          {"dpi", o.dpi},
          {"face_height", tidy(o.face_height)},
          {"position", vision::word_of(vision::kPositions, o.position)},
          {"offset_x", tidy(o.offset_x)},
          {"offset_y", tidy(o.offset_y)},
          {"shape", vision::word_of(vision::kShapes, o.shape)},
          {"align_eyes", o.align_eyes}};
}

json picture_json(Picture& picture, const Looked& looked) {
  json faces = json::array();
  for (std::size_t i = 0; i < looked.detection.faces.size(); ++i) {
    const Face& face = looked.detection.faces[i];
    faces.push_back({{"box", {tidy(face.box.x), tidy(face.box.y), tidy(face.box.width), tidy(face.box.height)}},
                     {"score", tidy(static_cast<double>(face.score))},
                     {"points", points_json(face.points)},
                     {"turned", face.turned},
                     {"quality", quality_json(looked.quality[i])}});
  }
  json times = times_json(looked.detection.times);
  times["decode"] = tidy(picture.decode_ms);
  json latency = json::object();
  {
    const std::lock_guard lock(picture.mutex);
    for (const auto& [runtime, seen] : picture.looked) latency[runtime_name(runtime)] = times_json(seen->detection.times);
  }
  return {{"id", picture.id},
          {"file", picture.name},
          {"format", picture.opened.format},
          {"width", picture.opened.image->width},
          {"height", picture.opened.image->height},
          {"runtime", looked.detection.runtime},
          {"provider", looked.detection.provider},
          {"turned", looked.detection.turned},
          {"times_ms", times},
          {"latency_ms", latency},
          {"error", nullptr},
          {"faces", faces}};
}

}  // namespace sdx::faces::page
