#pragma once
// Sessions of this project's own programs, with options that the public interface does not have.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <sdx/session.hpp>

#include "base/thread_pool.h"
#include "base/tools_api.h"
#include "graph/graph.h"
#include "onnx/given_data.h"
#include "onnx/writer.h"
#include "plan/profiler.h"
#include "session/custom_ops.h"

namespace sdx::session {

struct ModelBytes {
  std::span<const std::byte> bytes;  // are copied
  std::filesystem::path folder;      // of external data; empty: there are none
};
// A model's file, its content, or a model that was read or built.
using Source = std::variant<std::filesystem::path, ModelBytes, Model>;

struct FixedExtent {
  std::string input;
  std::size_t axis = 0;
  std::int64_t extent = 0;
};

// Options of a session that only this project's own programs use. Everything that they refer to must live while the session is
// opened.
struct InternalOptions {
  CustomOps operators;              // come before the operators of the build, and before those of SessionOptions::custom_ops
  const GivenData* data = nullptr;  // may be null
  // Replacements for initializers of the model's main graph, of the same type and shape; names that the model lacks are ignored.
  // The session keeps the tensors' owners.
  std::vector<std::pair<std::string, Tensor>> initializers;
  std::vector<FixedExtent> extents;  // of inputs, whatever symbols the model has for them
  WriteOptions optimized_model;      // how the file of SessionOptions::optimized_model is written, where `external_name` is set
  std::uint64_t* optimized_bytes = nullptr;  // not null: receives that file's size, and nothing is written
  std::shared_ptr<ThreadPool> pool;          // computes on it, whatever SessionOptions say of threads; null: as they say
  bool fallbacks_told_elsewhere = false;     // by the opener of the session: they are in its report only

  // Whether they change the model. Such a session takes nothing from the cache of compiled models, and keeps nothing there.
  bool change_the_model() const {
    const bool given = data != nullptr && !(data->files.empty() && data->tensors.empty());
    return given || !operators.empty() || !initializers.empty() || !extents.empty();
  }
};

// Like Session::open() and Session::from_bytes().
SDX_TOOLS_API Session open(Source source, const SessionOptions& options, const InternalOptions& internal = {});

// Beside the options of a run.
struct InternalRunOptions {
  std::shared_ptr<plan::Profiler> profiler;  // records the run's steps in place of the session's; null: that one does, if any
};

// As Session::run().
SDX_TOOLS_API NamedValues run(const Session& session, const NamedValues& inputs, const RunOptions& options,
                              const InternalRunOptions& internal);

}  // namespace sdx::session
