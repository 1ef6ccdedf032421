// GetCompileApi: models prepared for providers that compile ahead. The processor has none, so that a compiled model is the model
// itself, which later sessions open as any other.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>

#include "dropin/editor/functions.h"
#include "dropin/editor/parts.h"
#include "dropin/status.h"
#include "onnx/reader.h"
#include "onnx/writer.h"

namespace sdx::dropin {

using WriteFunction = OrtStatus* (*)(void* state, const void* bytes, std::size_t size);

struct OrtModelCompilationOptions {
  std::filesystem::path input_path, output_path;
  std::span<const std::byte> input_bytes;  // the program's
  const OrtModel* input_model = nullptr;   // the program's
  std::filesystem::path external_file;
  std::size_t external_above = 0;
  OrtAllocator* allocator = nullptr;
  void** buffer = nullptr;
  std::size_t* buffer_size = nullptr;
  WriteFunction write = nullptr;
  void* write_state = nullptr;
  std::uint32_t flags = 0;
};

namespace {

namespace fs = std::filesystem;
using Options = OrtModelCompilationOptions;

constexpr std::uint32_t kErrorIfNothingCompiled = 1, kErrorIfFileExists = 2, kKnownFlags = 3;

OrtStatus* create(const OrtEnv*, const OrtSessionOptions* session, Options** out) noexcept {
  return guarded([&] {
    require(out, "out") = nullptr;
    require(session, "session_options");
    *out = new Options;
  });
}
void release(Options* options) noexcept { delete options; }

template <class F>
OrtStatus* change(Options* options, F&& function) noexcept {
  return guarded([&] { function(require(options, "model_compile_options")); });
}

void clear_input(Options& o) {
  o.input_path.clear();
  o.input_bytes = {};
  o.input_model = nullptr;
}
void clear_output(Options& o) {
  o.output_path.clear();
  o.buffer = nullptr;
  o.write = nullptr;
}

OrtStatus* set_input_path(Options* options, const char* path) noexcept {
  return change(options, [&](Options& o) {
    clear_input(o);
    o.input_path = &require(path, "input_model_path");
  });
}
OrtStatus* set_input_bytes(Options* options, const void* bytes, std::size_t size) noexcept {
  return change(options, [&](Options& o) {
    if (bytes == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "Invalid input model: data pointer is null");
    if (size == 0) fail_ort(ORT_INVALID_ARGUMENT, "Invalid input model: data size is 0");
    clear_input(o);
    o.input_bytes = {static_cast<const std::byte*>(bytes), size};
  });
}
OrtStatus* set_input_model(Options* options, const OrtModel* model) noexcept {
  return change(options, [&](Options& o) {
    clear_input(o);
    o.input_model = &require(model, "model");
  });
}
OrtStatus* set_output_path(Options* options, const char* path) noexcept {
  return change(options, [&](Options& o) {
    if (path == nullptr || *path == '\0') fail_ort(ORT_INVALID_ARGUMENT, "Invalid output model path: path is empty");
    clear_output(o);
    o.output_path = path;
  });
}
OrtStatus* set_external_file(Options* options, const char* path, std::size_t above) noexcept {
  return change(options, [&](Options& o) {
    if (path == nullptr || *path == '\0') fail_ort(ORT_INVALID_ARGUMENT, "Invalid external initializer file: path is empty");
    o.external_file = path;
    o.external_above = above;
  });
}
OrtStatus* set_output_buffer(Options* options, OrtAllocator* allocator, void** buffer, std::size_t* size) noexcept {
  return change(options, [&](Options& o) {
    if (allocator == nullptr)
      fail_ort(ORT_INVALID_ARGUMENT, "Invalid allocator for output model buffer: allocator pointer is null");
    if (buffer == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "Invalid output model buffer: output pointer is null");
    if (size == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "Invalid output model buffer: size pointer is null");
    clear_output(o);
    o.allocator = allocator;
    o.buffer = buffer;
    o.buffer_size = size;
    *buffer = nullptr;
    *size = 0;
  });
}
OrtStatus* set_write_function(Options* options, WriteFunction write, void* state) noexcept {
  return change(options, [&](Options& o) {
    if (write == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "OrtWriteBufferFunc function pointer is null");
    clear_output(o);
    o.write = write;
    o.write_state = state;
  });
}
OrtStatus* set_flags(Options* options, std::uint32_t flags) noexcept {
  return change(options, [&](Options& o) {
    if ((flags & ~kKnownFlags) != 0)
      fail_ort(ORT_INVALID_ARGUMENT, "there are no compilation flags " + std::to_string(flags & ~kKnownFlags));
    o.flags = flags;
  });
}
// Accepted without effect: there are no contexts of providers.
OrtStatus* set_embed_mode(Options* options, bool) noexcept {
  return change(options, [](Options&) {});
}
OrtStatus* set_context_place(Options* options, const char* folder, const char* name) noexcept {
  return change(options, [&](Options&) {
    if (folder == nullptr || *folder == '\0') fail_ort(ORT_INVALID_ARGUMENT, "output_dir is null or empty");
    if (name == nullptr || *name == '\0') fail_ort(ORT_INVALID_ARGUMENT, "model_name is null or empty");
  });
}
// Accepted without effect: nodes stay as they are, whatever the level.
OrtStatus* set_level(Options* options, std::int32_t) noexcept {
  return change(options, [](Options&) {});
}
// Weights go where the model's own file or SetOutputModelExternalInitializersFile says.
OrtStatus* set_location_function(Options* options, Table::Function function, void*) noexcept {
  return change(options, [&](Options&) {
    if (function == nullptr) fail_ort(ORT_INVALID_ARGUMENT, "OrtGetInitializerLocationFunc function pointer is null");
    fail_ort(
        ORT_NOT_IMPLEMENTED,
        "SetOutputModelGetInitializerLocationFunc is not implemented by Sardonyx: use SetOutputModelExternalInitializersFile");
  });
}
OrtStatus* set_weightless(Options* options, bool wanted) noexcept {
  return change(options, [&](Options&) {
    if (wanted) fail_ort(ORT_NOT_IMPLEMENTED, "models without weights are not written by Sardonyx");
  });
}

Model input_of(const Options& o) {
  if (!o.input_path.empty()) return read_model(o.input_path);
  if (!o.input_bytes.empty()) return read_model(o.input_bytes, nullptr, {});
  if (o.input_model != nullptr) return build_model(*o.input_model);
  fail_ort(ORT_INVALID_ARGUMENT, "Input model to compile must be loaded from either a file or a memory buffer");
}

// "model.onnx" becomes "model_ctx.onnx".
fs::path output_path(const Options& o) {
  if (!o.output_path.empty()) return o.output_path;
  if (o.input_path.empty())
    fail_ort(ORT_INVALID_ARGUMENT, "Output model path must be specified when the input model is loaded from a buffer");
  return o.input_path.parent_path() / (o.input_path.stem().string() + "_ctx" + o.input_path.extension().string());
}

void write_file(const Options& o, const Model& model) {
  const fs::path path = output_path(o);
  if ((o.flags & kErrorIfFileExists) != 0 && fs::exists(path)) {
    fail_ort(ORT_FAIL, "Failed to generate EP context model since the file '" + path.string() + "' exist already.");
  }
  WriteOptions how;
  if (!o.external_file.empty()) {
    how.external_above = std::max<std::size_t>(o.external_above, 1);
    how.external_name = o.external_file.filename().string();
  }
  write_model(model, path, how);
}

OrtStatus* compile(const OrtEnv*, const Options* options) noexcept {
  OrtStatus* refused = nullptr;
  OrtStatus* const status = guarded([&] {
    const Options& o = require(options, "model_options");
    const Model model = input_of(o);
    if ((o.flags & kErrorIfNothingCompiled) != 0) {
      fail_ort(ORT_FAIL,
               "Unable to compile any nodes. Check that the session EPs support compilation and can execute at least one "
               "subgraph in the model.");
    }
    if (o.buffer == nullptr && o.write == nullptr) return write_file(o, model);
    const std::string bytes = write_model(model);
    if (o.write != nullptr) {
      refused = o.write(o.write_state, bytes.data(), bytes.size());
      return;
    }
    *o.buffer = allocate(o.allocator, bytes.size());
    std::memcpy(*o.buffer, bytes.data(), bytes.size());
    *o.buffer_size = bytes.size();
  });
  return status != nullptr ? status : refused;
}

OrtStatus* newer_function() noexcept {
  return make_status(ORT_NOT_IMPLEMENTED, "this function of the compile API is newer than Sardonyx knows");
}

const void* compile_table() noexcept {
  static const CompileFunctions functions = [] {
    CompileFunctions f{};
    for (Table::Function& slot : f.functions) slot = reinterpret_cast<Table::Function>(&newer_function);
    using F = CompileFunction;
    f.set(F::ReleaseModelCompilationOptions, &release);
    f.set(F::CreateModelCompilationOptionsFromSessionOptions, &create);
    f.set(F::SetInputModelPath, &set_input_path);
    f.set(F::SetInputModelFromBuffer, &set_input_bytes);
    f.set(F::SetOutputModelPath, &set_output_path);
    f.set(F::SetOutputModelExternalInitializersFile, &set_external_file);
    f.set(F::SetOutputModelBuffer, &set_output_buffer);
    f.set(F::SetEpContextEmbedMode, &set_embed_mode);
    f.set(F::CompileModel, &compile);
    f.set(F::SetFlags, &set_flags);
    f.set(F::SetEpContextBinaryInformation, &set_context_place);
    f.set(F::SetGraphOptimizationLevel, &set_level);
    f.set(F::SetOutputModelWriteFunc, &set_write_function);
    f.set(F::SetOutputModelGetInitializerLocationFunc, &set_location_function);
    f.set(F::SetInputModel, &set_input_model);
    f.set(F::SetWeightlessEnabled, &set_weightless);
    return f;
  }();
  return functions.functions;
}

}  // namespace

void fill_compile(Table& table) { table.set(Slot::GetCompileApi, &compile_table); }

}  // namespace sdx::dropin
