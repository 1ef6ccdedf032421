#pragma once
// A model as one function among others that somebody else differentiates: forward and backward as programs of their own, with
// what the backward one reads kept between them.

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
  // The inputs of the model's graph are all that varies: parameters, buffers, and what the user gives. Nodes that train a batch
  // normalisation give new running statistics as further outputs.
  explicit AutogradModel(Model model);
  ~AutogradModel();
  AutogradModel(const AutogradModel&) = delete;
  AutogradModel& operator=(const AutogradModel&) = delete;

  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }  // the model's
  // The inputs, running means and variances, that outputs behind the model's replace. Variances are those of samples, as PyTorch
  // keeps them.
  const std::vector<std::size_t>& updates() const { return updates_; }

  bool random() const { return random_; }  // some node draws random numbers

  // What a forward run keeps for its backward run.
  struct Kept;

  // `wanted`: by input whether its gradient will be asked for. `kept` receives what backward() takes where any is; null: nothing
  // will be asked for. `seed`: of random operators. Throws Error(not_implemented) for what has no gradient,
  // Error(invalid_argument) for an input of another number or type than the model takes.
  std::vector<Tensor> forward(std::span<const Tensor> inputs, const std::vector<bool>& wanted, std::uint64_t seed,
                              std::shared_ptr<const Kept>* kept);

  // `inputs`: those of the forward run, whose memory still holds the same. `gradients`: of the model's outputs that are floats,
  // in order, each shaped like its output. By input of the model; an undefined tensor where there is none, or none was wanted.
  // May be called again with the same.
  std::vector<Tensor> backward(const Kept& kept, std::span<const Tensor> inputs, std::span<const Tensor> gradients) const;

  // Which of the forward run's inputs backward() reads, and which outputs of the model: these must not change in between.
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
