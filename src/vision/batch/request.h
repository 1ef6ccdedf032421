#pragma once
// The arguments of `sdx faces detect|crop|align|blur|bench`, as they were typed.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "base/text/console.h"

namespace sdx::vision {

enum class Task { detect, crop, align, blur };

// Texts are as typed and empty where nothing was: settings.h reads them.
struct Request {
  Task task = Task::detect;
  std::vector<std::string> paths;  // files, folders, patterns with * ? [ ] **, "-" for frames on standard input

  // The detector. `model` is a file, and `session` holds its project's settings and the flags.
  std::filesystem::path model;
  SessionOptions session;
  std::string runtime = "auto";  // auto, native, ort
  std::optional<double> score, nms;
  int top_k = 5000;
  std::string size = "auto";  // auto, native, WxH
  int min_face = 0;
  bool any_orientation = false;
  std::string annotate;  // folder

  // Crops.
  std::string output;  // folder
  std::string preset, mm, position, fill, shape, face = "all", min_quality, enhance;
  int width = 0, height = 0, dpi = 0;  // 0: not typed
  std::optional<double> face_height, offset_x, offset_y, radius;
  bool align_eyes = false;
  std::string align_template = "arcface";  // align
  int align_size = 112;
  std::string blur_method = "blur";  // blur
  std::optional<double> blur_margin;

  // Files.
  std::string format = "auto", name, metadata;
  int quality = 90;
  std::vector<std::string> tags;  // K=V
  std::string map, source_column, output_column, map_table, map_query, map_delimiter;
  bool map_no_header = false;

  // The batch.
  int workers = 0;  // 0: one for each core
  bool resume = false, dry_run = false, watch = false, overwrite = false, json = false;
  std::string report;  // FILE.jsonl, .csv, .html

  // bench.
  int runs = 5;
  std::vector<std::string> runtimes;  // empty: native, and ort where it is available
};

}  // namespace sdx::vision
