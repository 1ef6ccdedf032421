#pragma once
// What a program gives a session beside its options, where it has no place in a file: operators in memory, weights, a whole
// model.

#include <memory>
#include <optional>

#include "base/thread_pool.h"
#include "base/tools_api.h"
#include "graph/graph.h"
#include "onnx/given_data.h"
#include "onnx/writer.h"
#include "session/custom_ops.h"

namespace sdx::session {

struct Additions {
  CustomOps operators;  // come before the operators of the build, and before those of SessionOptions::custom_ops
  GivenData data;
  // In place of initializers of the model's main graph, of the same type and shape; those that the model lacks are ignored. The
  // session keeps the tensors' owners.
  std::vector<std::pair<std::string, Tensor>> initializers;
  std::optional<Model> model;    // opened instead of what Session::from_bytes is given; taken away by it
  WriteOptions optimized_model;  // how the file of SessionOptions::optimized_model is written, where `external_name` is set
  std::uint64_t* optimized_bytes = nullptr;  // not null: receives that file's size, and nothing is written
  std::shared_ptr<ThreadPool> pool;          // computes on it, whatever SessionOptions say of threads; null: as they say

  bool empty() const { return operators.empty() && data.files.empty() && data.tensors.empty() && initializers.empty() && !model; }
};

// For the sessions that this thread opens while the object lives; the innermost counts. A session with additions takes nothing
// from the cache of compiled models, and keeps nothing there.
class SDX_TOOLS_API AdditionsScope {
 public:
  explicit AdditionsScope(Additions& additions) noexcept;
  ~AdditionsScope();
  AdditionsScope(const AdditionsScope&) = delete;
  AdditionsScope& operator=(const AdditionsScope&) = delete;

 private:
  Additions* outer_;
};

// Of this thread; null: none, or nothing that changes what a model computes.
SDX_TOOLS_API Additions* additions() noexcept;
// Of this thread; null: none was given.
const GivenData* given_data() noexcept;
std::shared_ptr<ThreadPool> given_pool() noexcept;
const WriteOptions* given_write_options() noexcept;
// Receives the optimised model's size, and nothing is written; null: the model is written.
std::uint64_t* wanted_optimized_bytes() noexcept;

// Puts the given initializers into the graph. Throws Error(invalid_argument) for another type or shape than the model's. Returns
// whether it changed anything.
bool replace_initializers(Graph& graph, const Additions& additions);

}  // namespace sdx::session
