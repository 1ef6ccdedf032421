#include "train/loop/place.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace sdx::train::loop {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostPoints = 1000;  // 20 KB of a checkpoint
constexpr std::int64_t kMost = 1'000'000'000'000'000;

// JSON has neither infinities nor NaN: null stands for them.
double number(const Json& j, double otherwise) { return j.is_null() ? otherwise : j.get<double>(); }

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

Json epoch_json(const FitEpoch& e) {
  return {{"epoch", e.epoch},
          {"loss", e.loss},
          {"accuracy", e.accuracy},
          {"validation_loss", e.validation_loss},
          {"validation_accuracy", e.validation_accuracy},
          {"learning_rate", e.learning_rate},
          {"best", e.best}};
}

FitEpoch epoch_from(const Json& j) {
  FitEpoch e;
  e.epoch = j.at("epoch").get<std::int64_t>();
  e.loss = number(j.at("loss"), kUnknown);
  e.accuracy = number(j.at("accuracy"), kUnknown);
  e.validation_loss = number(j.at("validation_loss"), kUnknown);
  e.validation_accuracy = number(j.at("validation_accuracy"), kUnknown);
  e.learning_rate = j.at("learning_rate").get<float>();
  e.best = j.at("best").get<bool>();
  return e;
}

Place read(const Json& j) {
  Place p;
  p.samples = j.at("samples").get<std::int64_t>();
  p.batch_size = j.at("batch_size").get<std::int64_t>();
  p.accumulate = j.at("accumulate").get<std::int64_t>();
  p.seed = j.at("seed").get<std::uint64_t>();
  p.shuffle = j.at("shuffle").get<bool>();
  p.drop_last = j.at("drop_last").get<bool>();
  p.epoch = j.at("epoch").get<std::int64_t>();
  p.batch = j.at("batch").get<std::int64_t>();
  p.batches_done = j.at("batches_done").get<std::int64_t>();
  p.loss_sum = j.at("loss_sum").get<double>();
  p.loss_samples = j.at("loss_samples").get<std::int64_t>();
  p.right = j.at("right").get<std::int64_t>();
  p.counted = j.at("counted").get<std::int64_t>();
  p.curve.batches_each = j.at("curve_each").get<std::int64_t>();
  p.curve.losses = j.at("curve").get<std::vector<double>>();
  p.point_sum = j.at("point_sum").get<double>();
  p.point_batches = j.at("point_batches").get<std::int64_t>();
  p.best_loss = number(j.at("best_loss"), std::numeric_limits<double>::infinity());
  p.best_epoch = j.at("best_epoch").get<std::int64_t>();
  for (const Json& e : j.at("history")) p.history.push_back(epoch_from(e));
  const auto within = [](std::int64_t v, std::int64_t least) { return v >= least && v <= kMost; };
  const bool good = within(p.samples, 1) && within(p.batch_size, 1) && within(p.accumulate, 1) && within(p.epoch, 0) &&
                    within(p.batch, 0) && within(p.batches_done, 0) && within(p.loss_samples, 0) && within(p.right, 0) &&
                    within(p.counted, 0) && within(p.point_batches, 0) && within(p.curve.batches_each, 1) &&
                    p.curve.losses.size() <= kMostPoints && within(p.best_epoch, -1) &&
                    p.best_epoch < std::max<std::int64_t>(1, p.epoch);
  if (!good) fail(ErrorCode::invalid_argument, "numbers that cannot be");
  return p;
}

}  // namespace

void Place::add_to_curve(double loss) {
  point_sum += loss;
  if (++point_batches < curve.batches_each) return;
  curve.losses.push_back(point_sum / static_cast<double>(point_batches));
  point_sum = 0;
  point_batches = 0;
  if (curve.losses.size() < kMostPoints) return;
  for (std::size_t i = 0; i < kMostPoints / 2; ++i) curve.losses[i] = (curve.losses[2 * i] + curve.losses[2 * i + 1]) / 2;
  curve.losses.resize(kMostPoints / 2);
  curve.batches_each *= 2;
}

std::string to_text(const Place& p) {
  Json history = Json::array();
  for (const FitEpoch& e : p.history) history.push_back(epoch_json(e));
  const Json j{{"version", 1},
               {"samples", p.samples},
               {"batch_size", p.batch_size},
               {"accumulate", p.accumulate},
               {"seed", p.seed},
               {"shuffle", p.shuffle},
               {"drop_last", p.drop_last},
               {"epoch", p.epoch},
               {"batch", p.batch},
               {"batches_done", p.batches_done},
               {"loss_sum", p.loss_sum},
               {"loss_samples", p.loss_samples},
               {"right", p.right},
               {"counted", p.counted},
               {"curve_each", p.curve.batches_each},
               {"curve", p.curve.losses},
               {"point_sum", p.point_sum},
               {"point_batches", p.point_batches},
               {"best_loss", p.best_loss},
               {"best_epoch", p.best_epoch},
               {"history", std::move(history)}};
  return j.dump();
}

Place place_from(std::string_view text) {
  try {
    const Json j = Json::parse(text);
    if (j.at("version") != 1) fail(ErrorCode::invalid_argument, "version {} is not known", j.at("version").dump());
    return read(j);
  } catch (const std::exception& e) {
    fail(ErrorCode::invalid_argument, "the checkpoint's property '{}' is not a valid position ({}); start again without resuming",
         kPlaceProperty, e.what());
  }
}

void check_same_task(const Place& saved, const Place& now) {
  const auto same = [](const char* what, auto before, auto after) {
    if (before == after) return;
    fail(ErrorCode::invalid_argument,
         "the checkpoint was made with {} {}, and this is {}: training cannot continue; use the same data and options, or start "
         "again without resuming",
         what, before, after);
  };
  same("samples:", saved.samples, now.samples);
  same("batch", saved.batch_size, now.batch_size);
  same("accumulate", saved.accumulate, now.accumulate);
  same("seed", saved.seed, now.seed);
  same("shuffle", saved.shuffle, now.shuffle);
  same("drop_last", saved.drop_last, now.drop_last);
}

}  // namespace sdx::train::loop
