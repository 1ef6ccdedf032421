#include "train/loop/data/open.h"

#include <algorithm>

#include "base/error.h"
#include "train/loop/data/subset.h"

namespace sdx::train::loop {
namespace {

namespace fs = std::filesystem;

bool has_arrays(const fs::path& folder) {
  for (const fs::directory_entry& e : fs::directory_iterator(folder)) {
    if (e.path().extension() == ".npy") return true;
  }
  return false;
}

Source open_source(const SourceRequest& r) {
  std::error_code ignored;
  if (!fs::exists(r.path, ignored)) fail(ErrorCode::io, "the data '{}' do not exist", r.path.string());
  if (fs::is_directory(r.path, ignored)) return has_arrays(r.path) ? open_arrays(r) : open_pictures(r);
  const std::string ending = r.path.extension().string();
  if (ending == ".npz") return open_arrays(r);
  if (ending == ".csv" || ending == ".tsv") return open_csv(r);
  if (ending == ".jsonl" || ending == ".ndjson") return open_lines(r);
  fail(ErrorCode::invalid_argument,
       "'{}': expected arrays (.npz, or a folder of .npy), a folder with a folder of pictures for each class, .csv, .tsv or "
       ".jsonl",
       r.path.string());
}

}  // namespace

OpenedData open_data(const Task& task, const DataSettings& settings) {
  Source source = open_source({task, settings, settings.data, nullptr, settings.augmentation.any()});
  OpenedData out;
  out.classes = source.classes;
  out.batch = source.batch;
  out.kind = std::move(source.kind);
  out.notes = std::move(source.notes);
  if (!settings.eval.empty()) {
    Source eval = open_source({task, settings, settings.eval, &out.classes, false});
    out.validation = std::move(eval.data);
    out.notes.insert(out.notes.end(), eval.notes.begin(), eval.notes.end());
  } else if (settings.validation_split > 0) {
    std::tie(out.train, out.validation) = split(std::move(source.data), settings.validation_split, settings.seed);
  } else {
    out.validation = std::move(source.eval);
  }
  if (source.data) out.train = std::move(source.data);
  if (settings.augmentation.any() && !fs::is_directory(settings.data)) {
    fail(ErrorCode::invalid_argument, "--augment changes pictures, and '{}' holds none", settings.data.string());
  }
  return out;
}

}  // namespace sdx::train::loop
