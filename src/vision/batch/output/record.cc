#include "vision/batch/output/record.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/system/printable.h"
#include "base/text/csv.h"
#include "base/text/json_text.h"
#include "vision/names.h"

namespace sdx::vision::batch {
namespace {

using Json = nlohmann::json;
using faces::Level;
using faces::Point;
using faces::Points;

// At most `digits` after the point, without zeros at the end; NaN and infinities become null, since JSON has no word for them.
std::string number(double value, int digits) {
  if (!std::isfinite(value)) return "null";
  std::string out = fmt::format("{:.{}f}", value, digits);
  while (out.ends_with('0')) out.pop_back();
  if (out.ends_with('.')) out.pop_back();
  return out == "-0" ? "0" : out;
}

std::string angle(const std::optional<double>& degrees) { return degrees ? number(*degrees, 2) : "null"; }

std::string face_json(const FaceRecord& f, bool with_outputs) {
  std::string points;
  for (const NamedPoint& p : kPoints) {
    const std::optional<Point>& at = f.face.points.*p.member;
    if (!at) continue;
    points += fmt::format("{}\"{}\": [{}, {}]", points.empty() ? "" : ", ", p.name, number(at->x, 3), number(at->y, 3));
  }
  const faces::Box& b = f.face.box;
  const faces::Quality& q = f.quality;
  std::string out = fmt::format(
      "{{\"box\": [{}, {}, {}, {}], \"score\": {}, \"points\": {{{}}}, \"quality\": {{\"level\": \"{}\", \"sharpness\": {}, "
      "\"exposure\": {}, \"size_px\": {}, \"yaw\": {}, \"pitch\": {}, \"roll\": {}}}",
      number(b.x, 3), number(b.y, 3), number(b.width, 3), number(b.height, 3), number(f.face.score, 6), points, name_of(q.level),
      number(q.sharpness, 3), number(q.exposure, 4), number(q.size_px, 2), angle(q.yaw), angle(q.pitch), angle(q.roll));
  if (with_outputs) out += ", \"output\": " + json_or_null(f.output);
  return out + "}";
}

std::string or_null(int value) { return value == 0 ? "null" : fmt::format("{}", value); }

std::string text_at(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

template <class T>
T number_at(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<T>() : T{};
}

std::optional<double> angle_at(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? std::optional<double>(it->get<double>()) : std::nullopt;
}

FaceRecord face_from(const Json& j) {
  FaceRecord out;
  const auto box = j.at("box").get<std::array<float, 4>>();
  out.face.box = {box[0], box[1], box[2], box[3]};
  out.face.score = number_at<float>(j, "score");
  for (const NamedPoint& p : kPoints) {
    const auto it = j.at("points").find(p.name);
    if (it == j.at("points").end()) continue;
    const auto at = it->get<std::array<float, 2>>();
    out.face.points.*p.member = Point{at[0], at[1]};
  }
  const Json& q = j.at("quality");
  for (std::size_t i = 0; i < kLevels.size(); ++i) {
    if (text_at(q, "level") == kLevels[i]) out.quality.level = static_cast<Level>(i);
  }
  out.quality.sharpness = number_at<double>(q, "sharpness");
  out.quality.exposure = number_at<double>(q, "exposure");
  out.quality.size_px = number_at<double>(q, "size_px");
  out.quality.yaw = angle_at(q, "yaw");
  out.quality.pitch = angle_at(q, "pitch");
  out.quality.roll = angle_at(q, "roll");
  out.output = text_at(j, "output");
  return out;
}

// Text that spreadsheets would take for a formula gets a leading quote.
std::string csv_text(std::string_view text) {
  const bool formula = !text.empty() && std::string_view("=+@\t\r").find(text[0]) != std::string_view::npos;
  return csv_quoted(formula ? "'" + std::string(text) : text);
}

std::string csv_row(const Record& r, int index, const FaceRecord* f) {
  std::string out = fmt::format("{},{},{},", csv_text(r.file), r.width, r.height);
  if (f != nullptr) {
    const faces::Box& b = f->face.box;
    out +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{}", index, number(b.x, 3), number(b.y, 3), number(b.width, 3),
                    number(b.height, 3), number(f->face.score, 6), name_of(f->quality.level), number(f->quality.sharpness, 3),
                    number(f->quality.exposure, 4), number(f->quality.size_px, 2), f->output.empty() ? "" : csv_text(f->output));
  } else {
    out += ",,,,,,,,,," + (r.output.empty() ? "" : csv_text(r.output));
  }
  return out + "," + (r.error.empty() ? "" : csv_text(r.error)) + "\r\n";
}

}  // namespace

const char* name_of(Level level) { return word_of(kLevels, level).data(); }

std::string record_json(const Record& r, bool with_outputs) {
  const Times& t = r.times;
  std::string out = fmt::format(
      "{{\"file\": {}, \"width\": {}, \"height\": {}, \"runtime\": {}, \"provider\": {}, \"turned\": {}, \"times_ms\": "
      "{{\"decode\": {}, "
      "\"preprocess\": {}, \"inference\": {}, \"postprocess\": {}, \"crop\": {}, \"encode\": {}}}, \"error\": {}, \"faces\": [",
      json_string(r.file), or_null(r.width), or_null(r.height), json_or_null(r.runtime), json_or_null(r.provider), r.turned,
      number(t.decode, 3), number(t.preprocess, 3), number(t.inference, 3), number(t.postprocess, 3), number(t.crop, 3),
      number(t.encode, 3), json_or_null(r.error));
  for (std::size_t i = 0; i < r.faces.size(); ++i) out += (i == 0 ? "" : ", ") + face_json(r.faces[i], with_outputs);
  out += "]";
  if (!r.output.empty()) out += ", \"output\": " + json_string(r.output);
  if (!r.annotated.empty()) out += ", \"annotated\": " + json_string(r.annotated);
  if (!r.warning.empty()) out += ", \"warning\": " + json_string(r.warning);
  return out + "}";
}

Record record_from_json(std::string_view text) {
  try {
    const Json j = Json::parse(text);
    Record out;
    out.file = text_at(j, "file");
    out.width = number_at<int>(j, "width");
    out.height = number_at<int>(j, "height");
    out.runtime = text_at(j, "runtime");
    out.provider = text_at(j, "provider");
    out.error = text_at(j, "error");
    out.output = text_at(j, "output");
    out.annotated = text_at(j, "annotated");
    out.warning = text_at(j, "warning");
    out.turned = number_at<int>(j, "turned");
    for (const Json& face : j.at("faces")) {
      out.faces.push_back(face_from(face));
      out.faces.back().face.turned = out.turned;
    }
    const Json& t = j.at("times_ms");
    out.times = {number_at<double>(t, "decode"),      number_at<double>(t, "preprocess"), number_at<double>(t, "inference"),
                 number_at<double>(t, "postprocess"), number_at<double>(t, "crop"),       number_at<double>(t, "encode")};
    return out;
  } catch (const Json::exception& e) {
    fail(ErrorCode::invalid_argument, "not a record of a picture: {}", e.what());
  }
}

std::string record_text(const Record& r) {
  if (!r.error.empty()) return fmt::format("{}  error: {}\n", one_line(r.file), printable(r.error));
  std::string out = fmt::format("{}  {}x{}  {} {}", one_line(r.file), r.width, r.height, r.faces.size(),
                                r.faces.size() == 1 ? "face" : "faces");
  if (r.turned != 0) out += fmt::format("  turned by {} degrees", r.turned);
  if (!r.output.empty()) out += " -> " + one_line(r.output);
  if (!r.annotated.empty()) out += "  marked: " + one_line(r.annotated);
  out += '\n';
  for (std::size_t i = 0; i < r.faces.size(); ++i) {
    const FaceRecord& f = r.faces[i];
    out += fmt::format("  {}  score {:.2f}  {:.0f}x{:.0f} at {:.0f},{:.0f}  quality {} (sharpness {:.0f})", i + 1, f.face.score,
                       f.face.box.width, f.face.box.height, f.face.box.x, f.face.box.y, name_of(f.quality.level),
                       f.quality.sharpness);
    if (!f.output.empty()) out += "  -> " + one_line(f.output);
    out += '\n';
  }
  return out;
}

std::string csv_heading() {
  return "file,width,height,face,box_x,box_y,box_width,box_height,score,quality,sharpness,exposure,size_px,output,error,"
         "turned\r\n";
}

std::string record_csv(const Record& r) {
  if (r.faces.empty()) return csv_row(r, 0, nullptr);
  std::string out;
  for (std::size_t i = 0; i < r.faces.size(); ++i) out += csv_row(r, static_cast<int>(i) + 1, &r.faces[i]);
  return out;
}

}  // namespace sdx::vision::batch
