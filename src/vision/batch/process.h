#pragma once
// One picture of a batch: decoded, searched for faces, and processed by the task.

#include <optional>
#include <string>
#include <vector>

#include <sdx/faces.hpp>
#include <sdx/image.hpp>

#include "vision/batch/input/inputs.h"
#include "vision/batch/output/journal.h"
#include "vision/batch/output/output_folder.h"
#include "vision/batch/output/record.h"
#include "vision/batch/settings.h"

namespace sdx::vision::batch {

// State that all pictures of a batch share.
struct Context {
  const Settings& settings;
  const faces::FaceDetector& detector;
  OutputFolder* outputs = nullptr;  // null: nothing is written
  OutputFolder* marked = nullptr;   // --annotate
  std::string timestamp;
  bool dry = false;
  bool discard = false;     // outputs are encoded and thrown away: for measuring
  bool thumbnails = false;  // for the report
};

struct Processed {
  Record record;
  std::vector<std::pair<std::string, std::uint64_t>> outputs;  // absolute paths and sizes
  bool already_there = false;                                  // the record's error is that a result exists
  std::vector<std::string> thumbnails;                         // JPEG, one for each of the first faces
};

// Never throws for errors of the picture or its outputs: they are in the record. `frame`: a picture that is decoded already.
Processed process(const Context& context, const Input& input, std::optional<media::Image> frame);

// The whole file, for decoding. Throws Error(io).
std::string read_picture(const std::filesystem::path& path);

}  // namespace sdx::vision::batch
