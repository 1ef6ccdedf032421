#include "train/loop/work_folder.h"

#include <system_error>

#include "base/system/temporary.h"
#include "onnx/writer.h"

namespace sdx::train::loop {

namespace fs = std::filesystem;

WorkFolder::WorkFolder() : path_(make_temporary_folder("sdx-train-")) {}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void WorkFolder::write(const Model& model, const char* name) const {
  constexpr std::size_t kLarge = std::size_t{1} << 20;
  write_model(model, path_ / name, {.external_above = kLarge, .external_name = ""});
}

}  // namespace sdx::train::loop
