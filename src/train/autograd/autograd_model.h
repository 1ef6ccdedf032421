#pragma once
// A model as one function within a computation that another library differentiates: forward and backward are programs of their
// own, and the values that backward reads are kept between them.

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <sdx/tensor.hpp>

#include "base/memory.h"
#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx::train {

// Thread-safe.
class SDX_TOOLS_API AutogradModel {
 public:
  // All variable data are inputs of the model's graph: parameters, buffers, and the user's inputs. Nodes that train a batch
  // normalisation give new running statistics as further outputs.
  explicit AutogradModel(Model model);
  ~AutogradModel();
  AutogradModel(const AutogradModel&) = delete;
  AutogradModel& operator=(const AutogradModel&) = delete;

  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }  // the model's
  // The inputs (running means and variances) that outputs after the model's replace. Variances are those of samples, as in
  // PyTorch.
  const std::vector<std::size_t>& updates() const { return updates_; }

  bool random() const { return random_; }  // some node draws random numbers

  // The values that a forward run keeps for its backward run.
  struct Kept;

  // `wanted`: for each input, whether its gradient will be requested. `kept` receives the argument for backward() if any gradient
  // is wanted; null: none will be requested. `seed`: for random operators. Throws Error(not_implemented) for nodes without a
  // gradient, Error(invalid_argument) for a wrong number of inputs or a wrong type.
  std::vector<Tensor> forward(std::span<const Tensor> inputs, const std::vector<bool>& wanted, std::uint64_t seed,
                              std::shared_ptr<const Kept>* kept);

  // `inputs`: those of the forward run, whose memory must be unchanged. `gradients`: of the model's outputs that are floats, in
  // order, each shaped like its output. Returns a gradient for each input of the model; an undefined tensor if there is none, or
  // none was wanted. May be called again with the same arguments.
  std::vector<Tensor> backward(const Kept& kept, std::span<const Tensor> inputs, std::span<const Tensor> gradients) const;

  // The inputs of the forward run and the outputs of the model that backward() reads: these must not change in between.
  static const std::vector<std::size_t>& reads_inputs(const Kept& kept);
  static const std::vector<std::size_t>& reads_outputs(const Kept& kept);

  std::size_t programs() const;  // compiled so far and still held

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_for(std::span<const Tensor> inputs, const std::vector<bool>& wanted, bool keeps);
  void find_updates();
  void check_inputs(std::span<const Tensor> inputs) const;

  Model model_;
  std::vector<std::string> inputs_, outputs_;
  std::vector<std::size_t> updates_;
  struct Statistics {
    NodeId node;
    std::size_t output;  // 1: mean, 2: variance
  };
  std::vector<Statistics> statistics_;  // by update
  bool random_ = false;
  std::shared_ptr<BlockKeep> memory_;
  mutable std::mutex mutex_;
  std::list<std::shared_ptr<const Compiled>> recent_;
};

}  // namespace sdx::train
