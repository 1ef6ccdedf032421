// Any bytes, read as a model: read, expand functions, infer, write, read again. Only sdx::Error may come out, nothing may be
// `internal`, and what was written must read back to the same graph.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/memory.h"
#include "onnx/functions.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "ops/infer.h"

namespace {

using sdx::Error;
using sdx::ErrorCode;
using sdx::Model;

[[noreturn]] void broken(const char* what, const std::string& detail) {
  std::fprintf(stderr, "BROKEN: %s\n%s\n", what, detail.c_str());
  std::abort();
}

Model read(const std::string& bytes) {
  return sdx::read_model(std::as_bytes(std::span<const char>(bytes.data(), bytes.size())), nullptr, {});
}

void check_round_trip(const Model& model) {
  std::string written;
  try {
    written = sdx::write_model(model);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::invalid_argument) return;  // what the format cannot say
    throw;
  }
  try {
    const Model again = read(written);
    again.graph.verify();
    if (again.graph.dump() != model.graph.dump()) broken("the written model differs", model.graph.dump() + again.graph.dump());
  } catch (const Error& e) {
    broken("the written model cannot be read", std::string(e.what()) + "\n" + model.graph.dump());
  }
}

void exercise(const std::string& bytes) {
  Model model = read(bytes);
  model.graph.verify();
  check_round_trip(model);
  sdx::inline_functions(model);
  model.graph.verify();
  sdx::ops::infer_in_place(model.graph);
  model.graph.verify();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const sdx::BudgetScope scope(std::make_shared<sdx::MemoryBudget>(std::size_t{1} << 30));
  try {
    exercise(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const Error& e) {
    if (e.code() == ErrorCode::internal) broken("an internal error", e.what());
  }
  return 0;
}
