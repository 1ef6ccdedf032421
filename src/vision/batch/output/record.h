#pragma once
// The result for one picture: as text, as JSON, in journals and in reports.

#include <string>
#include <string_view>
#include <vector>

#include <sdx/faces.hpp>

namespace sdx::vision::batch {

// Milliseconds.
struct Times {
  double decode = 0, preprocess = 0, inference = 0, postprocess = 0, crop = 0, encode = 0;
};

struct FaceRecord {
  faces::Face face;  // in pixels of the whole upright picture
  faces::Quality quality;
  std::string output;  // the file that was written for it; "" for none
};

struct Record {
  std::string file;           // as it was named
  int width = 0, height = 0;  // upright; 0: not known
  std::string runtime, provider;
  Times times;
  int turned = 0;       // clockwise degrees by which the picture had to be turned
  std::string error;    // "" for none
  std::string warning;  // "" for none
  std::vector<FaceRecord> faces;
  std::string output;     // blur: the picture that was written
  std::string annotated;  // the marked picture that was written
};

const char* name_of(faces::Level level);

// {"file", "width", "height", "runtime", "provider", "turned", "times_ms", "error", "faces"}, "warning" where there is one, and
// where files were written "output" in each face, "output" and "annotated".
std::string record_json(const Record& record, bool with_outputs);
// Parses the output of record_json(…, true). Throws Error(invalid_argument).
Record record_from_json(std::string_view text);

// A few lines, names as one_line() has them.
std::string record_text(const Record& record);

// The columns of reports, and a row for each face; one without a face for pictures that have none.
std::string csv_heading();
std::string record_csv(const Record& record);

}  // namespace sdx::vision::batch
