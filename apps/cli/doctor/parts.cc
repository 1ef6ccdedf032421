// The libraries of an installation.

#include <string>
#include <vector>

#include "array/linalg/module_api.h"
#include "base/module/one_file.h"
#include "base/system/dynlib.h"
#include "cli/doctor/parts.h"
#include "hub/module_api.h"
#include "media/modules.h"
#include "project/yaml/yaml_events.h"
#include "quantize/tools.h"
#include "serve/grpc_api.h"
#include "serve/module_api.h"
#include "session/ort_operators.h"
#include "speech/tools.h"
#include "text/tools.h"
#include "train/loop/tools.h"
#include "vision/batch/tools.h"
#include "vision/page/module_api.h"

namespace sdx::cli::doctor {
namespace {

struct Entry {
  const char* name;
  const char* purpose;
  LibraryAsked asked;
};

// Tokenizers look for a copy beside the engine, then for the system's.
LibraryAsked regular_expressions() {
  LibraryAsked asked = ask_for_library("libsdx_onig.so");
  asked.linked = is_one_file();
  if (const std::string system = find_library("libonig.so.5"); !system.empty()) asked.files.emplace_back(system);
  asked.package = "libonig5";
  return asked;
}

// What the command loads.
std::vector<Entry> own_entries() {
  std::vector<Entry> all{
      {"text", "language models and tokenizers", ask_for<text::Tools>()},
      {"speech", "speech to text", ask_for<speech::Tools>()},
      {"vision", "faces", ask_for<vision::Tools>()},
      {"quantize", "quantising models", ask_for<quantize::Tools>()},
      {"train", "training", ask_for<train::loop::Tools>()},
      {"serve", "sdx serve", ask_for<serve::ServeModule>()},
      {"grpc", "gRPC for sdx serve", ask_for<serve::GrpcModule>()},
      {"faces page", "sdx faces page", ask_for<faces::page::Module>()},
      {"hub", "sdx pull", ask_for<hub::Module>()},
      {"yaml", "project files and registries", ask_for<YamlModule>()},
  };
  for (const media::FormatModule& format : media::format_modules()) all.push_back({format.name, format.purpose, format.asked});
  all.push_back({"sndfile", "sound other than plain WAV", ask_for<media::SoundModule>()});
  all.push_back({"onig", "regular expressions of tokenizers", regular_expressions()});
  return all;
}

// What other programs load; nothing of it lies beside a command that is one file.
std::vector<Entry> entries() {
  std::vector<Entry> all = own_entries();
  if (is_one_file()) return all;
  all.push_back({"array", "arrays, for programs", ask_for_library("libsdx_array.so.0")});
  all.push_back({"linalg", "linear algebra of arrays", ask_for<array::detail::LinalgModule>()});
  all.push_back({"benchmark", "measuring, for programs", ask_for_library("libsdx_benchmark.so.0")});
  all.push_back({"drop-in", "programs written for ONNX Runtime", ask_for<session::OrtOperatorsModule>()});
  return all;
}

}  // namespace

std::vector<Part> look_at_parts() {
  const std::vector<Entry> all = entries();
  std::vector<LibraryAsked> asked;
  for (const Entry& entry : all) asked.push_back(entry.asked);
  const std::vector<LibraryLook> looks = look_at_libraries(asked);
  std::vector<Part> parts;
  for (std::size_t i = 0; i < all.size(); ++i) parts.push_back({all[i].name, all[i].purpose, looks[i]});
  return parts;
}

}  // namespace sdx::cli::doctor
