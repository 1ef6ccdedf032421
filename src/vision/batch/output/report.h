#pragma once
// The results of a batch, in a file.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/system/new_file.h"
#include "vision/batch/output/record.h"
#include "vision/batch/settings.h"

namespace sdx::vision::batch {

// The file appears when finish() is called. The contact sheet (HTML) shows at most kMostThumbnails faces, so that it can be
// opened however many there are, and lists every failure up to kMostFailures.
class Report {
 public:
  static constexpr int kMostThumbnails = 1000, kMostFailures = 1000;

  // Throws Error(io).
  Report(const std::filesystem::path& file, ReportKind kind, bool with_outputs);

  void add(const Record& record, const std::vector<std::string>& thumbnails);
  void finish(double seconds);

 private:
  void write(const std::string& text);
  void add_to_sheet(const Record& record, const std::vector<std::string>& thumbnails);

  ReportKind kind_;
  bool with_outputs_;
  NewFile file_;
  std::int64_t pictures_ = 0, faces_ = 0, failed_ = 0;
  int shown_ = 0;
  std::string failures_;
};

}  // namespace sdx::vision::batch
