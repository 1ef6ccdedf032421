#include "text/tokenizer/load/load.h"

#include "base/error.h"
#include "base/system/mapped_file.h"

namespace sdx::text {

std::shared_ptr<const Core> load_core(const std::filesystem::path& path) {
  try {
    return core_of_json(read_file(path));
  } catch (Error& e) {
    throw e.add_context("in " + path.string());
  }
}

}  // namespace sdx::text
