#include "session/given/given_inputs.h"

#include <map>

#include "base/error.h"
#include "session/specs.h"

namespace sdx::session {

SharedSymbols shared_symbols(const std::vector<ValueSpec>& inputs) {
  std::map<std::string, int> uses;
  for (const ValueSpec& spec : inputs) {
    for (const std::string& symbol : spec.symbols) {
      if (!symbol.empty()) ++uses[symbol];
    }
  }
  SharedSymbols shared;
  std::map<std::string, std::int32_t> numbers;
  for (const ValueSpec& spec : inputs) {
    std::vector<std::int32_t>& axes = shared.axes.emplace_back();
    for (const std::string& symbol : spec.symbols) {
      if (symbol.empty() || uses[symbol] < 2) {
        axes.push_back(-1);
        continue;
      }
      const auto [it, added] = numbers.emplace(symbol, static_cast<std::int32_t>(shared.names.size()));
      if (added) shared.names.push_back(symbol);
      axes.push_back(it->second);
    }
  }
  return shared;
}

bool check_input(const ValueSpec& spec, const Value& value) {
  if (!spec.is_tensor) {
    const std::string problem = container_problem(spec.type, value);
    if (problem.empty()) return false;
    fail(ErrorCode::invalid_argument, "input '{}' must be {}, received {}", spec.name, spec.type, problem.substr(2));
  }
  if (!value.is_tensor()) {
    fail(ErrorCode::invalid_argument, "input '{}' must be {}, received {}", spec.name, spec.type, value.type_string());
  }
  const Tensor& t = value.tensor();
  const auto mismatch = [&](const std::string& why) {
    fail(ErrorCode::invalid_argument, "input '{}' must be {}, received {}{}", spec.name, spec.type, t.type_string(), why);
  };
  if (spec.dtype != DataType::undefined && t.dtype() != spec.dtype)
    mismatch(": convert the elements to " + std::string(name(spec.dtype)));
  if (!spec.has_shape) return false;
  if (t.rank() != spec.shape.size()) mismatch(fmt::format(": rank {} instead of {}", t.rank(), spec.shape.size()));
  bool deviates = false;
  for (std::size_t i = 0; i < spec.shape.size(); ++i)
    deviates = deviates || (spec.shape[i] >= 0 && spec.shape[i] != t.shape()[i]);
  return deviates;
}

std::optional<TwoSizes> find_two_sizes(const SharedSymbols& symbols, const std::vector<Value>& values, Empty empty) {
  if (symbols.names.empty()) return std::nullopt;
  constexpr std::size_t kNowhere = SIZE_MAX;
  std::vector<TwoSizes::Place> first(symbols.names.size(), {kNowhere, 0});
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::vector<std::int32_t>& axes = symbols.axes[i];
    if (axes.empty() || !values[i].is_tensor() || values[i].tensor().rank() != axes.size()) continue;
    if (empty == Empty::skipped && values[i].tensor().size() == 0) continue;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      if (axes[axis] < 0) continue;
      TwoSizes::Place& seen = first[static_cast<std::size_t>(axes[axis])];
      if (seen.input == kNowhere) {
        seen = {i, axis};
      } else if (values[seen.input].tensor().shape()[seen.axis] != values[i].tensor().shape()[axis]) {
        return TwoSizes{symbols.names[static_cast<std::size_t>(axes[axis])], seen, {i, axis}};
      }
    }
  }
  return std::nullopt;
}

std::string describe(const TwoSizes& sizes, const std::vector<ValueSpec>& inputs, const std::vector<Value>& values) {
  const auto place = [&](const TwoSizes::Place& p) {
    const Tensor& t = values[p.input].tensor();
    return fmt::format("{} in input '{}' ({} given as {})", t.shape()[p.axis], inputs[p.input].name, inputs[p.input].type,
                       t.type_string());
  };
  return fmt::format("symbol '{}' is {} and {}", sizes.symbol, place(sizes.first), place(sizes.second));
}

std::string describe_other_extents(const std::vector<ValueSpec>& inputs, const std::vector<Value>& values) {
  std::string text;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!values[i].is_tensor() || !check_input(inputs[i], values[i])) continue;
    text += fmt::format("{}input '{}' must be {}, received {}", text.empty() ? "" : "; ", inputs[i].name, inputs[i].type,
                        values[i].type_string());
  }
  return text;
}

// Files of IR version 3 list every weight as an input with a default: of those the first few must do.
std::string describe(const std::vector<ValueSpec>& inputs) {
  constexpr std::size_t kDefaultsShown = 4;
  std::string out;
  std::size_t defaults = 0;
  for (const ValueSpec& s : inputs) {
    if (s.has_default && ++defaults > kDefaultsShown) continue;
    out += fmt::format("\n    {}: {}{}", s.name, s.type, s.has_default ? " (optional, has a default)" : "");
  }
  if (defaults > kDefaultsShown) out += fmt::format("\n    and {} more that have a default", defaults - kDefaultsShown);
  return out;
}

std::vector<std::string> names_of(const std::vector<ValueSpec>& specs) {
  std::vector<std::string> names;
  for (const ValueSpec& s : specs) names.push_back(s.name);
  return names;
}

}  // namespace sdx::session
