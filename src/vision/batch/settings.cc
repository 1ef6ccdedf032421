#include "vision/batch/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/text/ascii.h"
#include "base/words.h"
#include "vision/batch/colour.h"
#include "vision/batch/input/inputs.h"
#include "vision/batch/output/journal.h"
#include "vision/names.h"

namespace sdx::vision::batch {
namespace {

template <class... Args>
[[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::invalid_argument, fmt::vformat(format, fmt::make_format_args(args...)));
}

// Puts the flag in front of error messages.
template <class F>
auto of_flag(const char* flag, F&& read) {
  try {
    return read();
  } catch (const Error& e) {
    throw Error(e.code(), fmt::format("{}: {}", flag, e.message()));
  }
}

template <class Enum, std::size_t N>
Enum word(const char* flag, const std::array<std::string_view, N>& words, const std::string& text) {
  return of_flag(flag, [&] { return parse_word<Enum>(words, text); });
}

std::optional<std::pair<double, double>> pair_of(std::string_view text) {
  const std::size_t x = text.find_first_of("xX");
  if (x == std::string_view::npos) return std::nullopt;
  std::array<double, 2> out{};
  for (int i = 0; i < 2; ++i) {
    const std::string_view part = i == 0 ? text.substr(0, x) : text.substr(x + 1);
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), out[static_cast<std::size_t>(i)]);
    if (error != std::errc{} || end != part.data() + part.size()) return std::nullopt;
  }
  return std::pair{out[0], out[1]};
}

void within(const char* flag, double value, double least, double most) {
  if (!(value >= least && value <= most)) wrong("{} {}: expected {} to {}", flag, value, least, most);
}

constexpr double kMostPixels = faces::kMaxCropSide;

void parse_size(const Request& r, faces::DetectorOptions& o) {
  using Size = faces::DetectorOptions::Size;
  if (r.size == "auto" || r.size == "native") {
    o.size = r.size == "auto" ? Size::automatic : Size::native;
    return;
  }
  const auto size = pair_of(r.size);
  if (!size || size->first != std::floor(size->first) || size->second != std::floor(size->second)) {
    wrong("--size {}: expected auto, native, or WxH, for example 640x480", r.size);
  }
  within("--size", size->first, 16, kMostPixels);
  within("--size", size->second, 16, kMostPixels);
  o.size = Size::fixed;
  o.width = static_cast<int>(size->first);
  o.height = static_cast<int>(size->second);
}

void parse_fill(const Request& r, faces::CropOptions& o) {
  if (r.fill.empty()) return;
  if (r.fill == "blur") {
    o.fill = faces::Fill::blur;
  } else if (r.fill == "edge") {
    o.fill = faces::Fill::edge;
  } else if (r.fill == "shift") {
    o.fill = faces::Fill::shift;
  } else {
    o.colour = of_flag("--fill", [&] { return parse_colour(r.fill); });
    o.fill = faces::Fill::colour;
  }
}

void parse_crop_size(const Request& r, faces::CropOptions& o) {
  const bool by_pixels = r.width > 0 || r.height > 0;
  if (by_pixels && !r.mm.empty()) wrong("--mm and --width or --height contradict each other: give one of them");
  if (!r.preset.empty() && (by_pixels || !r.mm.empty())) {
    wrong("--preset {} sets the size: omit {}", r.preset, by_pixels ? "--width and --height" : "--mm");
  }
  if (!r.mm.empty()) {
    const auto mm = pair_of(r.mm);
    if (!mm || !(mm->first > 0) || !(mm->second > 0)) wrong("--mm {}: expected WxH in millimetres, for example 35x45", r.mm);
    o.dpi = r.dpi > 0 ? r.dpi : 300;
    o.width = of_flag("--mm", [&] { return faces::mm_to_pixels(mm->first, o.dpi); });
    o.height = of_flag("--mm", [&] { return faces::mm_to_pixels(mm->second, o.dpi); });
    return;
  }
  if (r.dpi > 0) o.dpi = r.dpi;
  if (!by_pixels) return;
  o.width = r.width > 0 ? r.width : r.height;  // one of them alone: a square
  o.height = r.height > 0 ? r.height : r.width;
}

faces::CropOptions parse_crop(const Request& r) {
  faces::CropOptions o = r.preset.empty() ? faces::CropOptions{} : of_flag("--preset", [&] { return faces::preset(r.preset); });
  parse_crop_size(r, o);
  if (r.face_height) {
    within("--face-height", *r.face_height, 1, 400);
    o.face_height = *r.face_height;
  }
  if (!r.position.empty()) {
    std::string text = r.position;
    std::replace(text.begin(), text.end(), '_', '-');
    o.position = word<faces::Position>("--position", kPositions, text == "centre" ? "center" : text);
  }
  if (r.offset_x || r.offset_y) {
    if (!r.position.empty() && o.position != faces::Position::custom) {
      wrong("--offset-x and --offset-y need --position custom, not {}", r.position);
    }
    o.position = faces::Position::custom;
    o.offset_x = r.offset_x.value_or(o.offset_x);  // the other one is the preset's
    o.offset_y = r.offset_y.value_or(o.offset_y);
    within("--offset-x", o.offset_x, -1, 1);
    within("--offset-y", o.offset_y, -1, 1);
  }
  parse_fill(r, o);
  o.align_eyes = o.align_eyes || r.align_eyes;
  if (!r.shape.empty()) o.shape = word<faces::Shape>("--shape", kShapes, r.shape);
  if (r.radius) {
    within("--radius", *r.radius, 0, 0.5);
    o.radius = *r.radius;
    if (r.shape.empty()) o.shape = faces::Shape::rounded;
  }
  return o;
}

void parse_pick(const Request& r, Settings& s) {
  if (r.face.empty() || r.face == "all") return;
  if (r.face == "largest" || r.face == "best") {
    s.pick = r.face == "largest" ? faces::Pick::largest : faces::Pick::best;
    return;
  }
  const auto [end, error] = std::from_chars(r.face.data(), r.face.data() + r.face.size(), s.nth);
  if (error != std::errc{} || end != r.face.data() + r.face.size() || s.nth < 1) {
    wrong("--face {}: expected all, largest, best, or a number from 1", r.face);
  }
  s.pick = faces::Pick::nth;
}

void parse_metadata(const Request& r, Settings& s) {
  for (const std::string& tag : r.tags) {
    const std::size_t equals = tag.find('=');
    if (equals == std::string::npos || equals == 0) wrong("--tag {}: expected NAME=VALUE", tag);
    s.tags.emplace_back(tag.substr(0, equals), tag.substr(equals + 1));
  }
  constexpr std::array<std::string_view, 3> kModes = {"preserve", "strip", "custom"};
  if (!r.metadata.empty()) {
    s.metadata = word<MetadataMode>("--metadata", kModes, r.metadata);
  } else if (r.task == Task::blur) {
    s.metadata = s.tags.empty() ? MetadataMode::strip : MetadataMode::custom;  // who hides faces hides places and names as well
  }
  if (s.metadata == MetadataMode::strip && !s.tags.empty()) wrong("--tag and --metadata strip contradict each other");
}

void parse_output(const Request& r, Settings& s) {
  if (r.format != "auto" && !r.format.empty()) {
    s.format = media::file_format(r.format);
    if (!s.format) wrong("--format {}: expected auto, png, jpeg, webp, tiff, bmp or avif", r.format);
  }
  within("--quality", r.quality, 1, 100);
  s.quality = r.quality;
  s.name_typed = !r.name.empty();
  const char* usual = r.task == Task::blur || r.task == Task::detect ? "{stem}.{ext}" : "{stem}_face{index}.{ext}";
  s.name = of_flag("--name", [&] { return NameTemplate(s.name_typed ? r.name : usual); });
  if (s.name.fixed_ending().empty()) return;
  const auto by_name = media::file_format(s.name.fixed_ending());
  if (s.format && s.format != by_name) {
    wrong("--name {} and --format {} contradict each other: write {{ext}} into the name", r.name, r.format);
  }
  s.format = by_name;
}

ReportKind report_kind(const std::string& file) {
  if (file.empty()) return ReportKind::none;
  const std::string ending = ascii_lower(std::filesystem::path(file).extension().string());
  if (ending == ".jsonl") return ReportKind::jsonl;
  if (ending == ".csv") return ReportKind::csv;
  if (ending == ".html" || ending == ".htm") return ReportKind::html;
  wrong("--report {}: expected a file that ends in .jsonl, .csv or .html", file);
}

void parse_table(const Request& r, Settings& s) {
  if (r.map.empty()) {
    for (const auto& [flag, value] : {std::pair{"--source-col", r.source_column},
                                      {"--output-col", r.output_column},
                                      {"--map-table", r.map_table},
                                      {"--map-query", r.map_query},
                                      {"--map-delimiter", r.map_delimiter}}) {
      if (!value.empty()) wrong("{} needs --map FILE", flag);
    }
    if (r.map_no_header) wrong("--map-no-header needs --map FILE");
  }
  if (!r.map_table.empty() && !r.map_query.empty()) wrong("--map-table and --map-query contradict each other");
  s.table = {r.source_column, r.output_column, r.map_table, r.map_query, r.map_delimiter, !r.map_no_header};
}

// "-o face.png" would make a folder of that name. One that is there, or was called so on purpose (face.png/), is one.
void check_folder(const char* flag, const std::string& folder, bool named) {
  const std::filesystem::path path = folder;
  std::error_code ignored;
  if (!media::file_format(path.extension().string()) || std::filesystem::is_directory(path, ignored)) return;
  const std::filesystem::path above = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const std::string one =
      named ? fmt::format("; for one file: {} {} --name {}", flag, above.string(), path.filename().string()) : std::string();
  wrong("{} {}: expected a folder, which may hold several pictures{}; a folder of that name is {}/", flag, folder, one, folder);
}

void check_batch(const Request& r, const Settings& s) {
  check_folder("-o", r.output, true);
  check_folder("--annotate", r.annotate, false);
  if (r.paths.empty() && r.map.empty()) wrong("no pictures given: give files, folders, patterns, '-' or --map");
  const bool frames = std::find(r.paths.begin(), r.paths.end(), "-") != r.paths.end();
  if (frames && r.paths.size() > 1) wrong("'-' (frames on standard input) cannot be combined with other pictures");
  if (frames && (r.watch || r.resume || !r.map.empty())) wrong("'-' cannot be combined with --watch, --resume or --map");
  if (s.writes() && r.output.empty() && !r.dry_run) wrong("-o FOLDER is missing: it names the folder for the results");
  if (!r.output.empty() && !r.annotate.empty() && real_folder(r.output) == real_folder(r.annotate)) {
    wrong("-o {} and --annotate {} name the same folder, in which marked pictures and results would have the same names",
          r.output, r.annotate);
  }
  if (r.watch && !r.map.empty()) wrong("--watch and --map contradict each other");
  if (r.watch && r.dry_run) wrong("--watch and --dry-run contradict each other");
  if (r.resume && r.dry_run && r.output.empty()) wrong("--resume needs -o FOLDER, where the journal is");
  if (r.resume && r.output.empty() && r.annotate.empty()) wrong("--resume needs -o or --annotate, where the journal is");
  if (r.resume && r.overwrite)
    wrong("--resume and --overwrite contradict each other: one keeps existing results, the other replaces them");
}

}  // namespace

faces::DetectorOptions parse_detector(const Request& r) {
  faces::DetectorOptions o;
  constexpr std::array<std::string_view, 3> kRuntimes = {"auto", "native", "ort"};
  const auto runtime = word<int>("--runtime", kRuntimes, r.runtime);
  o.runtime = runtime == 0 ? faces::Runtime::automatic : runtime == 2 ? faces::Runtime::ort : faces::Runtime::native;
  o.session = r.session;
  if (r.score) within("--score", *r.score, 0, 1);
  if (r.nms) within("--nms", *r.nms, 0, 1);
  within("--top-k", r.top_k, 1, 1'000'000);
  within("--min-face", r.min_face, 0, kMostPixels);
  if (r.score) o.score = static_cast<float>(*r.score);
  if (r.nms) o.nms = static_cast<float>(*r.nms);
  o.top_k = r.top_k;
  o.min_face = r.min_face;
  o.any_orientation = r.any_orientation;
  o.thorough = r.task == Task::blur;  // who hides faces cannot leave any
  parse_size(r, o);
  return o;
}

Settings parse(const Request& r) {
  Settings s;
  s.task = r.task;
  s.detector = parse_detector(r);
  if (r.task == Task::crop) s.crop = parse_crop(r);
  if (!r.enhance.empty()) s.enhance = of_flag("--enhance", [&] { return faces::parse_enhance(r.enhance); });
  parse_pick(r, s);
  if (!r.min_quality.empty()) s.min_quality = word<faces::Level>("--min-quality", kLevels, r.min_quality);
  if (r.align_template != "arcface") wrong("--template {}: there is arcface", r.align_template);
  s.align_size = r.align_size;
  if (r.task == Task::align && r.align_size % 112 != 0 && r.align_size % 128 != 0) {
    wrong("--size {}: expected a multiple of 112 or of 128", r.align_size);
  }
  s.blur_method = word<faces::Anonymise>("--method", kMethods, r.blur_method);
  s.blur_margin = r.blur_margin.value_or(0.1);
  within("--margin", s.blur_margin, 0, 2);
  parse_metadata(r, s);
  parse_output(r, s);
  s.report = report_kind(r.report);
  parse_table(r, s);
  check_batch(r, s);
  return s;
}

std::string settings_hash(const Request& r) {
  const auto model = identity_of(r.model);
  const auto or_none = [](const std::optional<double>& v) { return v ? fmt::format("{}", *v) : "-"; };
  std::string all = fmt::format("3|{}|{}|{}|{}|{}|{}|{}", static_cast<int>(r.task), r.model.string(), model ? model->bytes : 0,
                                model ? model->modified_ns : 0, r.runtime, fmt::join(r.session.providers, ","), r.size);
  all += fmt::format("|{}|{}|{}|{}|{}|{}", or_none(r.score), or_none(r.nms), r.top_k, r.min_face, r.any_orientation, r.annotate);
  for (const std::string& text : {r.preset, r.mm, r.position, r.fill, r.shape, r.face, r.min_quality, r.enhance, r.align_template,
                                  r.blur_method, r.format, r.name, r.metadata}) {
    all += fmt::format("|{}:{}", text.size(), text);
  }
  all += fmt::format("|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", r.width, r.height, r.dpi, or_none(r.face_height), or_none(r.offset_x),
                     or_none(r.offset_y), or_none(r.radius), r.align_eyes, r.align_size, or_none(r.blur_margin), r.quality);
  for (const std::string& tag : r.tags) all += fmt::format("|{}:{}", tag.size(), tag);
  return hash_text(all);
}

}  // namespace sdx::vision::batch
