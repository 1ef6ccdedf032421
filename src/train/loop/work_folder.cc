#include "train/loop/work_folder.h"

#include <unistd.h>

#include <cstdlib>
#include <system_error>

#include "base/error.h"
#include "onnx/writer.h"

namespace sdx::train::loop {

namespace fs = std::filesystem;

WorkFolder::WorkFolder() {
  std::string name = (fs::temp_directory_path() / "sdx-train-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    fail(ErrorCode::io, "cannot create a folder '{}': {}; TMPDIR names another place for temporary files", name,
         std::generic_category().message(errno));
  }
  path_ = name;
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void WorkFolder::write(const Model& model, const char* name) const {
  constexpr std::size_t kLarge = std::size_t{1} << 20;
  write_model(model, path_ / name, {.external_above = kLarge, .external_name = ""});
}

}  // namespace sdx::train::loop
