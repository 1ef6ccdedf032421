#pragma once
// The view of a node that inference functions and reference kernels have.

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <typeinfo>
#include <vector>

#include <sdx/tensor.hpp>

#include "base/cancel.h"
#include "base/error.h"
#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx::ops {

// --- inference ---------------------------------------------------------------------------------------------------------

// The result of inferring a subgraph, and the services that an inference function needs beyond its own node. Implemented by
// infer.cc.
class InferServices {
 public:
  virtual ~InferServices() = default;
  // Infers subgraph number `index` of the node with the given types for its formal inputs; returns the outputs' types.
  virtual std::vector<Type> infer_subgraph(std::size_t index, std::span<const Type> formal_inputs) = 0;
};

// Everything known about one node's inputs; receives facts about its outputs. Inputs may be partly or wholly unknown: an
// inference function states what it can and leaves the rest. It throws (use fail()) only if the model cannot be valid.
class SDX_TOOLS_API InferContext {
 public:
  InferContext(const Node& node, InferServices* services) : node_(node), services_(services) {}

  const Node& node() const { return node_; }
  const Attributes& attrs() const { return node_.attributes; }
  int version() const { return node_.version; }
  std::size_t num_inputs() const { return inputs.size(); }
  std::size_t num_outputs() const { return outputs.size(); }
  bool has_input(std::size_t i) const { return i < inputs.size() && inputs[i].type != nullptr; }
  bool has_output(std::size_t i) const { return i < node_.outputs.size() && node_.outputs[i] != kNoValue; }

  // Type of a present input; an unknown Type for an absent one.
  const Type& type(std::size_t i) const;
  DataType dtype(std::size_t i) const { return type(i).elem; }  // undefined: unknown or absent
  // Null when the rank is unknown (or the input absent).
  const SymShape* shape(std::size_t i) const;
  // The whole value, when it is known (initializers, folded shape computations), aligned; else null.
  const Tensor* value(std::size_t i) const;
  // The elements of an integer tensor of rank 0 or 1, each a constant, symbolic or unknown; null when nothing is known. A known
  // value() of up to 1024 elements is offered here too.
  const std::vector<Dim>* sym(std::size_t i) const;

  void output(std::size_t i, DataType elem, SymShape shape);
  void output(std::size_t i, DataType elem);  // unknown rank
  void output(std::size_t i, Type type);
  // Sets the elements of output i, too (an integer tensor of rank 0 or 1). This carries shapes through Shape -> Gather -> Concat
  // -> Reshape chains.
  void output_sym(std::size_t i, std::vector<Dim> elements);

  std::vector<Type> infer_subgraph(std::size_t index, std::span<const Type> formal_inputs);

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(ErrorCode::invalid_model, fmt::vformat(format, fmt::make_format_args(args...)));
  }

  // Filled by the engine.
  struct Input {
    const Type* type = nullptr;  // null: absent
    const Tensor* value = nullptr;
    const std::vector<Dim>* sym = nullptr;
  };
  std::vector<Input> inputs;
  std::vector<Type> outputs;
  std::vector<std::optional<std::vector<Dim>>> output_syms;

 private:
  const Node& node_;
  InferServices* services_;
};

// --- execution ---------------------------------------------------------------------------------------------------------

// Services that a running operator may use. Implemented by the session and by the constant folder.
class RunServices {
 public:
  virtual ~RunServices() = default;
  // Runs subgraph number `index` of the node: captures are bound already. Returns its outputs, owned by the caller.
  virtual std::vector<Value> run_subgraph(const Node& node, std::size_t index, std::vector<Value> formal_inputs) = 0;
  virtual const StopCondition& stop() const = 0;
  // A fresh seed for random operators without a `seed` attribute.
  virtual std::uint64_t next_seed() = 0;
};

// Data that a reference kernel has derived from its node's attributes alone (decision trees, tables of words), kept for the
// node's next runs. Thread-safe.
class NodeMemo {
 public:
  template <class T, class Make>
  std::shared_ptr<const T> get(Make&& make) {
    const std::lock_guard lock(mutex_);
    if (type_ == nullptr || *type_ != typeid(T)) {
      made_ = std::make_shared<const T>(make());
      type_ = &typeid(T);
    }
    return std::static_pointer_cast<const T>(made_);
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const void> made_;
  const std::type_info* type_ = nullptr;
};

// Everything a reference kernel needs for one call. Inputs are aligned, except sub-byte types, which are packed. Tensors that
// output() returns share no memory with inputs. A tensor passed to set_output() may, such as the result of a subgraph: the caller
// of the node copies it if that memory is written again.
class SDX_TOOLS_API OpContext {
 public:
  // `memo`: the node's memory, or null if it runs once.
  OpContext(const Node& node, std::span<const Value* const> inputs, std::span<Value* const> outputs, RunServices& services,
            NodeMemo* memo = nullptr)
      : node_(node), inputs_(inputs), outputs_(outputs), services_(services), memo_(memo) {}

  const Node& node() const { return node_; }
  const Attributes& attrs() const { return node_.attributes; }
  int version() const { return node_.version; }

  std::size_t num_inputs() const { return inputs_.size(); }
  // False for an input that is left out, and for an empty optional.
  bool has_input(std::size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr && !inputs_[i]->empty(); }
  const Value& input_value(std::size_t i) const;      // any kind; an empty Value when absent
  const Tensor& input(std::size_t i) const;           // throws Error(invalid_model) when absent or no tensor
  const Tensor* optional_input(std::size_t i) const;  // null when absent
  template <class T>
  const T* data(std::size_t i) const {
    return static_cast<const T*>(input(i).data());
  }

  std::size_t num_outputs() const { return outputs_.size(); }
  bool wants_output(std::size_t i) const { return i < outputs_.size() && outputs_[i] != nullptr; }
  // The tensor to write output i into, uninitialised. An unwanted output gets a scratch tensor. Throws Error(out_of_memory).
  Tensor& output(std::size_t i, DataType dtype, const Shape& shape);
  void set_output(std::size_t i, Value value);  // for sequences, maps, optionals, and tensors made elsewhere

  std::vector<Value> run_subgraph(std::size_t index, std::vector<Value> formal_inputs) {
    return services_.run_subgraph(node_, index, std::move(formal_inputs));
  }
  const StopCondition& stop() const { return services_.stop(); }
  RunServices& services() const { return services_; }
  // The `seed` attribute if given, else a new seed.
  std::uint64_t seed() const;

  // Returns make(), or its result from an earlier run of this node: it must depend on attributes and on the type T only.
  template <class T, class Make>
  std::shared_ptr<const T> once(Make&& make) const {
    return memo_ != nullptr ? memo_->get<T>(make) : std::make_shared<const T>(make());
  }

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(ErrorCode::runtime_failure, fmt::vformat(format, fmt::make_format_args(args...)));
  }

 private:
  const Node& node_;
  std::span<const Value* const> inputs_;
  std::span<Value* const> outputs_;
  RunServices& services_;
  NodeMemo* memo_;
  std::vector<std::unique_ptr<Value>> scratch_;
};

}  // namespace sdx::ops
