#pragma once
// The settings of a request: texts parsed, defaults filled in, contradictions refused.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sdx/faces.hpp>
#include <sdx/image.hpp>

#include "base/tools_api.h"
#include "vision/batch/input/table.h"
#include "vision/batch/output/naming.h"
#include "vision/batch/request.h"

namespace sdx::vision::batch {

enum class MetadataMode { preserve, strip, custom };
enum class ReportKind { none, jsonl, csv, html };

struct Settings {
  Task task = Task::detect;
  faces::DetectorOptions detector;
  faces::CropOptions crop;
  std::optional<faces::Enhance> enhance;
  faces::Pick pick = faces::Pick::all;
  int nth = 1;
  std::optional<faces::Level> min_quality;
  int align_size = 112;
  faces::Anonymise blur_method = faces::Anonymise::blur;
  double blur_margin = 0.1;
  std::optional<media::FileFormat> format;  // empty: the input's where it can be written
  int quality = 90;
  NameTemplate name{"{stem}"};
  bool name_typed = false;
  MetadataMode metadata = MetadataMode::preserve;
  std::vector<std::pair<std::string, std::string>> tags;
  TableOptions table;
  ReportKind report = ReportKind::none;

  bool writes() const { return task != Task::detect; }
};

// Throws Error(invalid_argument) that names the flag.
SDX_TOOLS_API Settings parse(const Request& request);
SDX_TOOLS_API faces::DetectorOptions parse_detector(const Request& request);

// A hash of everything that affects the results for a picture: flags, and the model with its size and time.
std::string settings_hash(const Request& request);

}  // namespace sdx::vision::batch
