#include <sdx/train/optimizer.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/error.h"

namespace sdx::train {
namespace {

constexpr std::array<std::pair<const char*, OptimizerKind>, 6> kNames{{{"adamw", OptimizerKind::adamw},
                                                                       {"adam", OptimizerKind::adam},
                                                                       {"sgd", OptimizerKind::sgd},
                                                                       {"rmsprop", OptimizerKind::rmsprop},
                                                                       {"adagrad", OptimizerKind::adagrad},
                                                                       {"lion", OptimizerKind::lion}}};

}  // namespace

OptimizerKind optimizer_named(std::string_view name) {
  for (const auto& [known, kind] : kNames) {
    if (name == known) return kind;
  }
  fail(ErrorCode::invalid_argument, "'{}' is not an optimizer; permitted: adamw, adam, sgd, rmsprop, adagrad, lion", name);
}

const char* to_string(OptimizerKind kind) { return kNames[static_cast<std::size_t>(kind)].first; }

double factor_at(const Schedule& schedule, std::int64_t step) {
  if (step < schedule.warmup) return static_cast<double>(step) / static_cast<double>(schedule.warmup);
  if (schedule.kind == ScheduleKind::constant) return 1;
  const double length = static_cast<double>(std::max<std::int64_t>(schedule.total - schedule.warmup, 1));
  const double done = std::min(static_cast<double>(step - schedule.warmup) / length, 1.0);
  const double left = schedule.kind == ScheduleKind::linear ? 1 - done : (1 + std::cos(std::numbers::pi * done)) / 2;
  const double end = schedule.end;
  return end + (1 - end) * left;
}

}  // namespace sdx::train
