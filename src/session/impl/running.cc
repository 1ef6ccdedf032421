// One run: checks inputs, arranges outputs in the caller's order, and warns.

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/suggest.h"
#include "session/given/given_inputs.h"
#include "session/impl/impl.h"
#include "tensor/own.h"

namespace sdx {

using namespace session;

namespace {

std::size_t output_index(const std::vector<ValueSpec>& outputs, const std::string& name) {
  const auto it = std::find_if(outputs.begin(), outputs.end(), [&](const ValueSpec& s) { return s.name == name; });
  if (it != outputs.end()) return static_cast<std::size_t>(it - outputs.begin());
  const std::vector<std::string> names = names_of(outputs);
  const std::string near = closest(name, names);
  fail(ErrorCode::invalid_argument, "the model has no output '{}'{}. Its outputs: {}", name,
       near.empty() ? "" : "; did you mean '" + near + "'?", join(names));
}

// A value for each output: the tensor that is bound to it, or nothing. Empty where nothing is bound.
std::vector<Value> bound_values(const std::vector<ValueSpec>& outputs, const std::vector<std::pair<std::string, Tensor>>& bound) {
  std::vector<Value> values(bound.empty() ? 0 : outputs.size());
  for (const auto& [name, tensor] : bound) {
    Value& value = values[output_index(outputs, name)];
    if (!value.empty()) fail(ErrorCode::invalid_argument, "output '{}' is bound twice", name);
    if (!tensor.defined() || !tensor.writable()) {
      fail(ErrorCode::invalid_argument, "the tensor bound to output '{}' must be writable, received {}", name,
           tensor.defined() ? "a read-only " + tensor.type_string() : "none");
    }
    value = tensor;
  }
  return values;
}

}  // namespace

// The caller holds `mutex`.
void Session::Impl::warn(std::string text) {
  log::warning("{}", text);
  warnings.push_back(std::move(text));
}

// Once per session: a run that the file does not foresee has worked.
void Session::Impl::warn_of_other_extents(const std::vector<Value>& values) {
  const std::vector<ValueSpec>& inputs = context->inputs;
  const std::lock_guard lock(mutex);
  if (std::exchange(warned_of_extents, true)) return;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!values[i].is_tensor() || !check_input(inputs[i], values[i])) continue;
    warn(fmt::format(
        "input '{}' is declared as {} but given as {}: the model runs at this size although its file declares another",
        inputs[i].name, inputs[i].type, values[i].type_string()));
  }
}

// Warned of once per session. Tensors without elements stand for missing data, such as the caches of a decoder's first step.
void Session::Impl::warn_of_two_sizes(const std::vector<Value>& values) {
  const std::lock_guard lock(mutex);
  if (warned_of_symbols) return;
  const std::optional<TwoSizes> sizes = find_two_sizes(context->symbols, values, Empty::skipped);
  if (!sizes) return;
  warned_of_symbols = true;
  warn(describe(*sizes, context->inputs, values) + ": the model runs at these sizes as if each axis had a symbol of its own");
}

// The given values in the order of `inputs`, checked; defaults where nothing is given.
std::vector<Value> Session::Impl::arrange(const NamedValues& given, std::size_t& which) const {
  const std::vector<ValueSpec>& inputs = context->inputs;
  std::vector<Value> values(inputs.size());
  std::vector<bool> present(inputs.size(), false);
  for (const NamedValue& item : given) {
    const auto it = std::find_if(inputs.begin(), inputs.end(), [&](const ValueSpec& s) { return s.name == item.name; });
    if (it == inputs.end()) {
      const std::vector<std::string> names = names_of(inputs);
      const std::string near = closest(item.name, names);
      fail(ErrorCode::invalid_argument, "the model has no input '{}'{}. Its inputs:{}", item.name,
           near.empty() ? "" : "; did you mean '" + near + "'?", describe(inputs));
    }
    const auto i = static_cast<std::size_t>(it - inputs.begin());
    if (present[i]) fail(ErrorCode::invalid_argument, "input '{}' is given twice", item.name);
    present[i] = true;
    values[i] = item.value;
    if (it->has_default) which |= kOverrides;
  }
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!present[i] && inputs[i].has_default) {
      if ((which & kOverrides) == 0) continue;  // then all defaults are constants
      const Graph& graph = context->full_model().graph;
      values[i] = *graph.value(graph.inputs()[i]).constant;
    } else if (!present[i]) {
      if (!context->may_be_absent[i]) missing.push_back("'" + inputs[i].name + "'");
      continue;
    }
    if (check_input(inputs[i], values[i])) which |= kOtherExtents;
  }
  if (!missing.empty()) {
    fail(ErrorCode::invalid_argument, "missing input{} {}. The model takes:{}", missing.size() == 1 ? "" : "s", join(missing),
         describe(inputs));
  }
  // Without extents there are no symbols either.
  if ((which & kOtherExtents) == 0 && find_two_sizes(context->symbols, values)) which |= kOwnSymbols;
  return values;
}

NamedValues Session::Impl::run(const NamedValues& given, const RunOptions& run_options, const InternalRunOptions& internal) {
  const std::vector<ValueSpec>& inputs = context->inputs;
  const std::vector<ValueSpec>& outputs = context->outputs;
  std::size_t which = 0;
  std::vector<Value> values = arrange(given, which);
  std::vector<bool> wanted;
  std::vector<std::size_t> order;
  if (!run_options.outputs.empty()) {
    wanted.assign(outputs.size(), false);
    for (const std::string& name : run_options.outputs) {
      order.push_back(output_index(outputs, name));
      wanted[order.back()] = true;
    }
  } else {
    for (std::size_t i = 0; i < outputs.size(); ++i) order.push_back(i);
  }

  Request request;
  request.values = std::move(values);
  request.which = which;
  request.wanted = std::move(wanted);
  request.bound = bound_values(outputs, run_options.bound);
  if (run_options.timeout) request.stop.deadline = std::chrono::steady_clock::now() + *run_options.timeout;
  if (run_options.cancel) request.stop.cancelled = run_options.cancel->flag();
  request.number = context->runs.fetch_add(1, std::memory_order_relaxed);
  request.profiler = internal.profiler;
  std::vector<Value> results;
  try {
    results = answer(request);
  } catch (Error& e) {
    e.add_context("in model '" + shown + "'");
    // Only then is the size to blame; a deadline, say, has nothing to do with it.
    const bool unfit =
        e.code() == ErrorCode::invalid_model || e.code() == ErrorCode::runtime_failure || e.code() == ErrorCode::invalid_argument;
    if ((which & (kOtherExtents | kOwnSymbols)) == 0 || !unfit) throw;
    const std::string sizes = (which & kOtherExtents) != 0
                                  ? describe_other_extents(inputs, request.values)
                                  : describe(*find_two_sizes(context->symbols, request.values), inputs, request.values);
    fail(ErrorCode::invalid_argument, "{}. The model does not work at this size: {}", sizes, e.what());
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "the machine ran out of memory during a run");
  }
  if ((which & kOtherExtents) != 0) warn_of_other_extents(request.values);
  if ((which & kOwnSymbols) != 0) warn_of_two_sizes(request.values);
  std::vector<Value> own(request.bound.size());  // the caller's memory, perhaps on purpose where an input lies
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (request.bound[i].is_tensor()) own[i] = std::exchange(results[i], Value());
  }
  unshare(results, request.values);
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (request.bound[i].is_tensor()) results[i] = std::move(own[i]);
  }
  NamedValues out;
  for (const std::size_t i : order) out.add(outputs[i].name, results[i]);
  return out;
}

// The failover's answer, and a line of telemetry about it.
std::vector<Value> Session::Impl::answer(const Request& request) {
  if (measures) decide(request);
  const std::shared_ptr<Failover> in_use = current_failover();
  if (!telemetry) return in_use->run(request);
  const auto start = std::chrono::steady_clock::now();
  std::shared_ptr<const CompiledChain> by;
  const auto tell = [&](std::string_view status) {
    if (!by) by = in_use->current();
    telemetry->run({by ? by->runtime() : "", by ? by->providers() : "", context->model.path}, ms_since(start), status);
  };
  try {
    std::vector<Value> results = in_use->run(request, &by);
    tell("ok");
    return results;
  } catch (const Error& e) {
    tell(name(e.code()));
    throw;
  }
}

}  // namespace sdx
