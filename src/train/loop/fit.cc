// The loop over epochs and batches.

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <optional>
#include <sdx/train/fit.hpp>
#include <utility>

#include "base/error.h"
#include "tensor/element.h"
#include "train/loop/accuracy.h"
#include "train/loop/loader.h"
#include "train/loop/place.h"
#include "train/step/program.h"

namespace sdx::train {

namespace {

using namespace loop;
using Clock = std::chrono::steady_clock;

// Epochs may be shorter than writing a checkpoint takes.
constexpr std::chrono::seconds kBetweenSaves{1};

std::int64_t batches_of(std::int64_t samples, const FitOptions& o) {
  return samples / o.batch + (samples % o.batch != 0 && !o.drop_last ? 1 : 0);
}

double share(std::int64_t right, std::int64_t counted) {
  return counted == 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(right) / static_cast<double>(counted);
}

class Fitting {
 public:
  Fitting(Trainer& trainer, Dataset& data, Dataset* validation, const FitOptions& options, const FitCallbacks& callbacks);
  FitResult run();

 private:
  BatchRequest request(const std::vector<std::int64_t>& order, std::int64_t epoch, std::int64_t batch) const;
  std::optional<BatchRequest> next_request();
  void find_place();
  bool patience_is_over() const;
  bool train_epoch();  // false: stopped
  void train_batch(const std::vector<Tensor>& batch);
  void finish_epoch();
  void validate(FitEpoch& e);
  void save(const std::filesystem::path& path);
  [[noreturn]] void give_up(Error error) const;
  FitResult result(FitResult::End end) const;

  Trainer& trainer_;
  Dataset& data_;
  Dataset* const validation_;
  const FitOptions& o_;
  const FitCallbacks& c_;
  Place place_;
  std::int64_t per_epoch_ = 0;
  bool saved_ = false;  // the place as it is, or an earlier one that is as good
  bool any_save_ = false;
  Clock::time_point last_save_ = Clock::now() - kBetweenSaves;
  // Used by the loader's thread.
  std::int64_t ask_epoch_ = 0, ask_batch_ = 0;
  std::vector<std::int64_t> order_;
  std::optional<Loader> loader_;
};

Fitting::Fitting(Trainer& trainer, Dataset& data, Dataset* validation, const FitOptions& options, const FitCallbacks& callbacks)
    : trainer_(trainer), data_(data), validation_(validation), o_(options), c_(callbacks) {
  const auto least = [](const char* what, std::int64_t value, std::int64_t smallest) {
    if (value < smallest) fail(ErrorCode::invalid_argument, "{} is {}; it is at least {}", what, value, smallest);
  };
  least("epochs", o_.epochs, 0);
  least("batch", o_.batch, 1);
  least("accumulate", o_.accumulate, 1);
  least("patience", o_.patience, 0);
  least("save_every", o_.save_every, 0);
  least("the number of samples", data_.size(), 1);
  if (o_.patience > 0 && validation_ == nullptr) {
    fail(ErrorCode::invalid_argument, "patience needs validation data, whose loss determines when to stop");
  }
  if (validation_ != nullptr && batches_of(validation_->size(), o_) == 0) {
    fail(ErrorCode::invalid_argument, "{} validation samples do not make a batch of {}", validation_->size(), o_.batch);
  }
  per_epoch_ = updates_per_epoch(data_.size(), o_) * o_.accumulate;
  if (per_epoch_ == 0) {
    fail(ErrorCode::invalid_argument,
         "{} samples are too few for {} batch{} of {}{}; give more samples, a smaller batch, or accumulate less", data_.size(),
         o_.accumulate, o_.accumulate == 1 ? "" : "es", o_.batch, o_.drop_last ? ", all of them full" : "");
  }
}

BatchRequest Fitting::request(const std::vector<std::int64_t>& order, std::int64_t epoch, std::int64_t batch) const {
  const auto begin = static_cast<std::size_t>(batch * o_.batch);
  const std::size_t end = std::min(order.size(), begin + static_cast<std::size_t>(o_.batch));
  return {{order.begin() + static_cast<std::ptrdiff_t>(begin), order.begin() + static_cast<std::ptrdiff_t>(end)}, epoch};
}

std::vector<std::int64_t> in_sequence(std::int64_t count) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  return order;
}

std::optional<BatchRequest> Fitting::next_request() {
  if (ask_batch_ == per_epoch_) {
    ask_batch_ = 0;
    ++ask_epoch_;
    order_.clear();
  }
  if (ask_epoch_ >= o_.epochs) return std::nullopt;
  if (order_.empty()) order_ = o_.shuffle ? shuffled(data_.size(), o_.seed, ask_epoch_) : in_sequence(data_.size());
  return request(order_, ask_epoch_, ask_batch_++);
}

void Fitting::find_place() {
  place_.samples = data_.size();
  place_.batch_size = o_.batch;
  place_.accumulate = o_.accumulate;
  place_.seed = o_.seed;
  place_.shuffle = o_.shuffle;
  place_.drop_last = o_.drop_last;
  auto& properties = trainer_.state().properties;
  const auto it = properties.find(kPlaceProperty);
  if (!o_.resume || it == properties.end()) {
    properties.erase(kPlaceProperty);
    return;
  }
  const std::string* text = std::get_if<std::string>(&it->second);
  Place saved = place_from(text == nullptr ? "" : *text);
  check_same_task(saved, place_);
  if (saved.batch > per_epoch_) {
    fail(ErrorCode::invalid_argument,
         "the checkpoint's position is invalid: batch {} of an epoch that has {}; start again without resuming", saved.batch,
         per_epoch_);
  }
  place_ = std::move(saved);
}

bool Fitting::patience_is_over() const { return o_.patience > 0 && place_.epochs_since_best() >= o_.patience; }

// A state that is not finite never becomes finite again: the previous checkpoint is worth more.
void Fitting::save(const std::filesystem::path& path) {
  if (const Parameter* lost = first_not_finite(trainer_.state())) {
    fail(ErrorCode::runtime_failure,
         "the parameter '{}' is not finite after an update, though the loss was: no checkpoint is written. Continue from the "
         "last one with a lower learning rate, or with clipped gradients",
         lost->name);
  }
  trainer_.state().properties[kPlaceProperty] = to_text(place_);
  trainer_.save_checkpoint(path);
  if (c_.saved) c_.saved(path);
}

std::filesystem::path best_of(const std::filesystem::path& checkpoint) {
  return std::filesystem::path(checkpoint.string() + ".best");
}

void Fitting::train_batch(const std::vector<Tensor>& batch) {
  FitStep step;
  step.learning_rate = trainer_.learning_rate();
  step.loss = trainer_.train_step(batch);
  if (!std::isfinite(step.loss)) fail(ErrorCode::runtime_failure, "the loss is {}", step.loss);
  step.epoch = place_.epoch;
  step.batch = place_.batch++;
  step.batches = per_epoch_;
  step.batches_done = ++place_.batches_done;
  step.samples = batch.empty() || batch[0].rank() == 0 ? 1 : batch[0].dim(0);
  place_.loss_sum += static_cast<double>(step.loss) * static_cast<double>(step.samples);
  place_.loss_samples += step.samples;
  place_.add_to_curve(step.loss);
  const AccuracyPlaces& a = o_.accuracy;
  if (a.labels >= 0 && a.training_scores >= 0) {
    const Hits hits = count_hits(trainer_.last_outputs().at(static_cast<std::size_t>(a.training_scores)),
                                 batch.at(static_cast<std::size_t>(a.labels)), a.ignored);
    place_.right += hits.right;
    place_.counted += hits.counted;
    step.accuracy = share(hits.right, hits.counted);
  }
  if (c_.step) c_.step(step);
}

// Nothing can be saved between two updates, because checkpoints do not hold the gradients gathered so far.
bool Fitting::train_epoch() {
  while (place_.batch < per_epoch_) {
    const std::optional<std::vector<Tensor>> batch = loader_->take();
    if (!batch) fail(ErrorCode::internal, "the data end before the epoch does");
    train_batch(*batch);
    saved_ = false;
    if (place_.batch % o_.accumulate != 0) continue;
    const std::int64_t updates = place_.batches_done / o_.accumulate;
    if (!o_.checkpoint.empty() && o_.save_every > 0 && updates % o_.save_every == 0) {
      save(o_.checkpoint);
      last_save_ = Clock::now();
      saved_ = any_save_ = true;
    }
    if (c_.stop && c_.stop()) return false;
  }
  return true;
}

void Fitting::validate(FitEpoch& e) {
  const std::vector<std::int64_t> order = in_sequence(validation_->size());
  const std::int64_t batches = batches_of(validation_->size(), o_);
  std::int64_t asked = 0, samples = 0;
  double sum = 0;
  Hits hits;
  Loader loader(*validation_, [&]() -> std::optional<BatchRequest> {
    if (asked == batches) return std::nullopt;
    return request(order, 0, asked++);
  });
  std::int64_t done = 0;
  while (const std::optional<std::vector<Tensor>> batch = loader.take()) {
    const std::vector<Tensor> outputs = trainer_.eval_step(*batch);
    const std::int64_t size = batch->empty() || batch->at(0).rank() == 0 ? 1 : batch->at(0).dim(0);
    sum += element_as_double(outputs.at(0), 0) * static_cast<double>(size);
    samples += size;
    const AccuracyPlaces& a = o_.accuracy;
    if (a.labels >= 0 && a.eval_scores >= 0) {
      const Hits more = count_hits(outputs.at(static_cast<std::size_t>(a.eval_scores)),
                                   batch->at(static_cast<std::size_t>(a.labels)), a.ignored);
      hits.right += more.right;
      hits.counted += more.counted;
    }
    if (c_.validation) c_.validation(++done, batches);
  }
  e.validation_loss = sum / static_cast<double>(samples);
  e.validation_accuracy = share(hits.right, hits.counted);
}

void Fitting::finish_epoch() {
  FitEpoch e;
  e.epoch = place_.epoch;
  e.loss = place_.loss_sum / static_cast<double>(place_.loss_samples);
  e.accuracy = share(place_.right, place_.counted);
  e.learning_rate = trainer_.learning_rate();
  if (validation_ != nullptr) validate(e);
  e.best = e.validation_loss < place_.best_loss;  // false for NaN
  if (e.best) {
    place_.best_loss = e.validation_loss;
    place_.best_epoch = e.epoch;
  }
  place_.history.push_back(e);
  place_.loss_sum = 0;
  place_.loss_samples = place_.right = place_.counted = 0;
  ++place_.epoch;
  place_.batch = 0;
  saved_ = false;
  if (c_.epoch) c_.epoch(e);
  if (o_.checkpoint.empty()) return;
  // The best one first: a process that is killed in between resumes before the end of this epoch, and gets here again.
  if (e.best) save(best_of(o_.checkpoint));
  if (Clock::now() - last_save_ < kBetweenSaves) return;
  save(o_.checkpoint);
  last_save_ = Clock::now();
  saved_ = any_save_ = true;
}

FitResult Fitting::result(FitResult::End end) const {
  FitResult r;
  r.end = end;
  r.history = place_.history;
  r.curve = place_.curve;
  if (place_.point_batches > 0) r.curve.losses.push_back(place_.point_sum / static_cast<double>(place_.point_batches));
  r.batches = place_.batches_done;
  r.best_epoch = place_.best_epoch;
  if (r.best_epoch >= 0 && !o_.checkpoint.empty()) r.best = best_of(o_.checkpoint);
  return r;
}

void Fitting::give_up(Error error) const {
  error.add_context(fmt::format("in epoch {}, batch {} of {}", place_.epoch + 1, place_.batch + 1, per_epoch_));
  if (any_save_) error.add_context(fmt::format("the last complete checkpoint is '{}'", o_.checkpoint.string()));
  throw error;
}

FitResult Fitting::run() {
  find_place();
  any_save_ = saved_ = place_.batches_done > 0 && !o_.checkpoint.empty();
  ask_epoch_ = place_.epoch;
  ask_batch_ = place_.batch;
  if (place_.epoch < o_.epochs) loader_.emplace(data_, [this] { return next_request(); });
  FitResult::End end = FitResult::End::complete;
  try {
    while (place_.epoch < o_.epochs) {
      if (patience_is_over()) {
        end = FitResult::End::patience;
        break;
      }
      if (!train_epoch()) {
        end = FitResult::End::stopped;
        break;
      }
      finish_epoch();
    }
    if (!o_.checkpoint.empty() && !saved_) save(o_.checkpoint);
  } catch (const Error& e) {
    give_up(e);
  }
  return result(end);
}

}  // namespace

std::int64_t updates_per_epoch(std::int64_t samples, const FitOptions& options) {
  if (options.batch < 1 || options.accumulate < 1) {
    fail(ErrorCode::invalid_argument, "batch is {} and accumulate {}; both are at least 1", options.batch, options.accumulate);
  }
  return batches_of(samples, options) / options.accumulate;
}

FitResult fit(Trainer& trainer, Dataset& data, Dataset* validation, const FitOptions& options, const FitCallbacks& callbacks) {
  return Fitting(trainer, data, validation, options, callbacks).run();
}

}  // namespace sdx::train
