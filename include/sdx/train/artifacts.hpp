#pragma once
// Generates from a forward model the four files that training needs, in the formats of ONNX Runtime 1.19: training_model.onnx,
// eval_model.onnx, optimizer_model.onnx, checkpoint. docs/training.md lists the differences.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sdx/error.hpp>
#include <sdx/export.hpp>
#include <sdx/train/optimizer.hpp>

namespace sdx::train {

enum class Loss {
  none,             // the model's first output is already the loss
  cross_entropy,    // scores [N, C, ...], labels integer [N, ...]; SoftmaxCrossEntropyLoss-12, mean
  mse,              // prediction and target of one shape; mean of squares
  bce_with_logits,  // logits and target of one shape; mean
  l1,               // prediction and target of one shape; mean of magnitudes
};
// Throws Error(invalid_argument) with the permitted words: cross-entropy, mse, bce-with-logits, l1, none.
SDX_API Loss loss_named(std::string_view name);

// LoRA (Hu and others 2021) on MatMul, Gemm and Conv-free linear layers: W x + (alpha / rank) B A x, with W frozen.
struct LoraOptions {
  std::int64_t rank = 8;
  float alpha = 16;
  std::vector<std::string> targets{"*"};  // globs of weight or node names
};

struct ArtifactOptions {
  // Initializers that are trained and that are not, by name or glob (`*`, `?`). Frozen wins. `requires_grad` empty: all float32
  // initializers of at least one axis that a gradient reaches, except the running statistics of BatchNormalization and settings
  // such as the scales of Resize. Trained and frozen ones become inputs and are kept in the checkpoint; other initializers stay
  // constants. Constant nodes count if the exact name of their output is given, or if all of the model's weights are Constant
  // nodes. A name or glob that matches nothing is an error, and so is a trained parameter, given by its exact name, that no
  // gradient reaches.
  std::vector<std::string> requires_grad, frozen;

  Loss loss = Loss::cross_entropy;
  // The output that the loss is computed from; empty: the model's first output. Name of the input for labels or target; empty:
  // "labels" for cross_entropy, else "target".
  std::string loss_input, target_name;
  // A second output of the model as the target in place of an input, as ONNX Runtime's `loss_input_names` permits.
  std::vector<std::string> loss_input_names;

  std::optional<OptimizerOptions> optimizer = OptimizerOptions{};  // no value: no optimizer_model.onnx

  // Outputs of the forward model to keep in the training and eval models, besides the loss.
  std::vector<std::string> additional_outputs;
  std::string prefix;               // of the files' names
  bool nominal_checkpoint = false;  // also "nominal_checkpoint"
  bool dry_run = false;             // only check that the files could be written, and say which

  // true: BatchNormalization uses batch statistics and updates the running ones; false: it uses the running ones, unchanged.
  bool train_batch_norm = true;
  // Replace the last linear layer by a new one with this many classes and small random weights from `seed`. Only this layer is
  // trained unless requires_grad says otherwise.
  std::optional<std::int64_t> head_classes;
  std::optional<LoraOptions> lora;
  // Values that the backward pass recomputes instead of keeping: names or globs of values; "auto": whatever is cheap to compute
  // (activations, normalisations, masks).
  std::vector<std::string> recompute;
  std::uint64_t seed = 0;
  // Parameters that are read in several places are shared on purpose: no warning. Exporters join those whose values are equal.
  bool shares_parameters = false;
  std::vector<std::filesystem::path> custom_ops;  // libraries with the model's own operators and their gradients
};

struct ArtifactFiles {
  std::filesystem::path training_model, eval_model, optimizer_model, checkpoint, nominal_checkpoint;  // empty: not written
  std::int64_t trained = 0, frozen = 0;                    // parameters in the checkpoint
  std::int64_t trained_elements = 0, frozen_elements = 0;  // elements in them
};

// Writes all files, or none, into `directory`, creating it if needed. Throws Error: invalid_argument for options that do not fit
// the model, not_implemented naming the node that has no gradient, io.
SDX_API ArtifactFiles generate_artifacts(const std::filesystem::path& model, const std::filesystem::path& directory,
                                         const ArtifactOptions& options = {});
// The same from a serialised ModelProto without external data.
SDX_API ArtifactFiles generate_artifacts(std::span<const std::byte> model, const std::filesystem::path& directory,
                                         const ArtifactOptions& options = {});

}  // namespace sdx::train
