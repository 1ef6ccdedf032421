#include "session/optimized/optimized_model.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/new_file.h"
#include "onnx/ort/ort_model.h"
#include "onnx/writer.h"
#include "passes/portable.h"
#include "session/open.h"

namespace sdx::session {
namespace {

constexpr std::size_t kMostInline = 1'900'000'000;  // protocol buffers end at 2 GiB
constexpr std::size_t kExternalAbove = 1024;        // of single constants, where some have to be outside

std::size_t constant_bytes(const Graph& graph) {
  std::size_t total = 0;
  for (const ValueInfo& v : graph.values()) {
    if (v.constant && v.constant->dtype() != DataType::string) total += v.constant->bytes();
  }
  return total;
}

bool named_ort(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".ort";
}

}  // namespace

void write_optimized_model(const Model& model, const SessionOptions& options, const InternalOptions& internal) {
  const std::filesystem::path& path = options.optimized_model;
  if (path.empty()) return;
  try {
    Model written = model;
    if (options.optimize) {
      optimize_portably(written.graph, {options.optimized_model_basic, options.disabled_passes, &model.opsets});
    }
    std::uint64_t* const size = internal.optimized_bytes;
    if (size != nullptr) NewFile::check(path);
    if (options.optimized_model_ort || named_ort(path)) {
      const std::string bytes = write_ort_model(written);
      if (size == nullptr) return write_file_atomically(path, bytes);
      *size = bytes.size();
      return;
    }
    WriteOptions how;
    if (!internal.optimized_model.external_name.empty()) {
      how = internal.optimized_model;
    } else if (constant_bytes(written.graph) > kMostInline) {
      how.external_above = kExternalAbove;
    }
    how.dry_run = size != nullptr;
    const std::uint64_t bytes = write_model(written, path, how);
    if (size != nullptr) *size = bytes;
  } catch (Error& e) {
    e.add_context("while writing the optimised model '" + path.string() + "'");
    throw;
  }
}

}  // namespace sdx::session
