#pragma once
// Training over epochs, as `sdx train` does it, for your own programs.
//
//   CheckpointState state = CheckpointState::load("artifacts/checkpoint");
//   Trainer trainer("artifacts", state);
//   const auto data = dataset_of({pictures, labels});
//   FitOptions options;
//   options.epochs = 5;
//   options.checkpoint = "trained";
//   fit(trainer, *data, options);

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sdx/export.hpp>
#include <sdx/tensor.hpp>
#include <sdx/train/trainer.hpp>

namespace sdx::train {

// Numbered samples. While it trains, fit() calls batch() on a separate thread, one call at a time.
class SDX_API Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  virtual ~Dataset();

  virtual std::int64_t size() const = 0;
  // These samples as one tensor for each input of the trainer, in its order; the first axis of each is as long as `samples`.
  // `epoch` counts from 0, for random changes that differ between epochs. The same arguments must always give the same batch,
  // regardless of earlier calls: resuming depends on it. Throws Error, which ends fit().
  virtual std::vector<Tensor> batch(std::span<const std::int64_t> samples, std::int64_t epoch) = 0;
};

// A dataset of arrays with one sample per row of the first axis. The data is not copied. Throws Error(invalid_argument) if the
// numbers of rows differ.
SDX_API std::unique_ptr<Dataset> dataset_of(std::vector<Tensor> arrays);

// The order of `count` samples in an epoch: the same on every machine, for any number of threads.
SDX_API std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch);

// The tensors from which the share of right answers is computed: the scores among the outputs of training and eval model, [N, C,
// ...], and the labels, integer [N, ...], among the inputs. -1: there is none.
struct AccuracyPlaces {
  int labels = -1, training_scores = -1, eval_scores = -1;
  std::int64_t ignored = std::numeric_limits<std::int64_t>::min();  // label to ignore
};

struct FitOptions {
  std::int64_t epochs = 1, batch = 32;
  std::int64_t accumulate = 1;  // TrainerOptions::accumulate. Batches that do not fill the last update of an epoch are left out.
  std::uint64_t seed = 0;       // of the order
  bool shuffle = true;
  bool drop_last = false;  // skip a last batch that is not full; needed if the model's batch size is fixed
  // Epochs without a lower validation loss after which training ends; 0: never. Needs validation data.
  std::int64_t patience = 0;
  // The file to which the state is written, by rename: after every `save_every` updates (0: never), after epochs (at most once a
  // second), when training is stopped, and at the end. "<checkpoint>.best" is the state with the lowest validation loss. Empty:
  // nothing is written.
  std::filesystem::path checkpoint;
  std::int64_t save_every = 0;
  // Resume where the trainer's state, loaded from such a checkpoint, was saved, with the same losses as uninterrupted training. A
  // state that no fit() has saved starts from the beginning. false: always start from the beginning.
  bool resume = false;
  AccuracyPlaces accuracy;
};

// Updates per epoch for this many samples; times `epochs`, it is a schedule's total.
SDX_API std::int64_t updates_per_epoch(std::int64_t samples, const FitOptions& options);

struct FitStep {
  std::int64_t epoch = 0, batch = 0, batches = 0;  // epoch and batch from 0; batches in the epoch
  std::int64_t batches_done = 0;                   // since training began, with this one
  std::int64_t samples = 0;                        // in the batch
  float loss = 0;
  double accuracy = std::numeric_limits<double>::quiet_NaN();
  float learning_rate = 0;
};

// NaN: not known.
struct FitEpoch {
  std::int64_t epoch = 0;
  double loss = 0;  // mean over samples, each at the time when it was trained with
  double accuracy = std::numeric_limits<double>::quiet_NaN();
  double validation_loss = std::numeric_limits<double>::quiet_NaN();
  double validation_accuracy = std::numeric_limits<double>::quiet_NaN();
  float learning_rate = 0;
  bool best = false;  // lowest validation loss so far
};

// Called on the thread that called fit(); any may be empty. An exception from one ends fit().
struct FitCallbacks {
  std::function<void(const FitStep&)> step;
  std::function<void(const FitEpoch&)> epoch;
  std::function<void(std::int64_t done, std::int64_t total)> validation;  // batches
  std::function<void(const std::filesystem::path&)> saved;                // a checkpoint
  std::function<bool()> stop;                                             // asked after each update; true: save, and end
};

// Losses over all of the training: each of the same number of batches, which doubles when there would be too many points.
struct LossCurve {
  std::int64_t batches_each = 1;
  std::vector<double> losses;
};

struct FitResult {
  enum class End { complete, patience, stopped };
  End end = End::complete;
  std::vector<FitEpoch> history;  // with the epochs from before a resume
  LossCurve curve;
  std::int64_t batches = 0;      // since training began
  std::int64_t best_epoch = -1;  // by validation loss
  std::filesystem::path best;    // its checkpoint; empty where there is none
};

// Trains. `validation` may be null, and needs an eval model otherwise. Throws Error: what the trainer and the data throw, a loss
// that is not finite as Error(runtime_failure), and Error(io) where a checkpoint cannot be written; in all cases the last
// checkpoint stays whole and its name is in the error's context. Error(invalid_argument) where a state to go on from belongs to
// other data or other options (samples, batch, accumulate, seed, shuffle).
SDX_API FitResult fit(Trainer& trainer, Dataset& data, Dataset* validation, const FitOptions& options,
                      const FitCallbacks& callbacks = {});
inline FitResult fit(Trainer& trainer, Dataset& data, const FitOptions& options, const FitCallbacks& callbacks = {}) {
  return fit(trainer, data, nullptr, options, callbacks);
}

}  // namespace sdx::train
