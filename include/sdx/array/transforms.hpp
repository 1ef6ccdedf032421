#pragma once
// Functions of functions: derivatives, batches, compiling. Functions take and return lists of arrays; they are called with arrays
// that stand for their arguments, and must compute only with operations. Source of the names: MLX 0.32. Errors:
// Error(invalid_argument) where numbers of arrays, shapes or axes do not fit, where an operation has no derivative, and where a
// function within vmap or compile reads numbers that depend on its arguments. Exceptions of a function pass through; nothing has
// changed then. Thread safety: everything here may be called from any number of threads at once.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <sdx/array/array.hpp>

namespace sdx::array {

using ArraysFunction = std::function<std::vector<array>(const std::vector<array>&)>;
using ArrayFunction = std::function<array(const array&)>;

// --- derivatives -------------------------------------------------------------------------------------------------------------

// The function's results at `primals`, and the products of `cotangents` (one for each result, of its shape) with the Jacobian:
// one for each primal. Complex numbers: of real functions of them, the gradient is that of real and imaginary part, as in MLX.
SDX_API std::pair<std::vector<array>, std::vector<array>> vjp(const ArraysFunction& fun, const std::vector<array>& primals,
                                                              const std::vector<array>& cotangents);
SDX_API std::pair<array, array> vjp(const ArrayFunction& fun, const array& primal, const array& cotangent);

// The results, and the products of the Jacobian with `tangents` (one for each primal, of its shape): one for each result.
SDX_API std::pair<std::vector<array>, std::vector<array>> jvp(const ArraysFunction& fun, const std::vector<array>& primals,
                                                              const std::vector<array>& tangents);
SDX_API std::pair<array, array> jvp(const ArrayFunction& fun, const array& primal, const array& tangent);

// A function that returns `fun`'s results and the gradients of the first one, which must have one element, with respect to the
// arguments of these numbers (negative ones from the end). Further results are passed on.
using ValueAndGradFunction = std::function<std::pair<std::vector<array>, std::vector<array>>(const std::vector<array>&)>;
SDX_API ValueAndGradFunction value_and_grad(ArraysFunction fun, std::vector<int> argnums = {0});
SDX_API std::function<std::pair<array, array>(const array&)> value_and_grad(ArrayFunction fun);
// Only the gradients.
SDX_API ArraysFunction grad(ArraysFunction fun, std::vector<int> argnums = {0});
SDX_API ArrayFunction grad(ArrayFunction fun);

// The same function, but its derivative recomputes intermediate values instead of keeping them.
SDX_API ArraysFunction checkpoint(ArraysFunction fun);

// Rules that replace a function's own. Empty ones leave the function's rules as they are.
struct CustomRules {
  // Gradients of all primals, from the cotangents of the outputs.
  std::function<std::vector<array>(const std::vector<array>& primals, const std::vector<array>& cotangents,
                                   const std::vector<array>& outputs)>
      vjp;
  // Tangents of the outputs; primals without a tangent have zeros.
  std::function<std::vector<array>(const std::vector<array>& primals, const std::vector<array>& tangents)> jvp;
  // Outputs, and the axis of the batch in each; nothing: not batched.
  std::function<std::pair<std::vector<array>, std::vector<std::optional<int>>>(const std::vector<array>& inputs,
                                                                               const std::vector<std::optional<int>>& in_axes)>
      vmap;
};
SDX_API ArraysFunction custom_function(ArraysFunction fun, CustomRules rules);

// --- batches -----------------------------------------------------------------------------------------------------------------

// Vectorises a function: fun is applied along an axis of its arguments and sees them without that axis. in_axes has one entry per
// argument, out_axes one per result; no value: not batched; empty lists: all 0. Negative axes count from the end.
using BatchAxes = std::vector<std::optional<int>>;
SDX_API ArraysFunction vmap(ArraysFunction fun, BatchAxes in_axes = {}, BatchAxes out_axes = {});
SDX_API ArrayFunction vmap(ArrayFunction fun, std::optional<int> in_axis = 0, std::optional<int> out_axis = 0);

// --- compiling ---------------------------------------------------------------------------------------------------------------

// State that a function reads or changes in addition to its arguments: all of its arrays, always in the same order.
struct Capture {
  std::function<std::vector<array>()> read;
  std::function<void(const std::vector<array>&)> write;
};

struct CompileOptions {
  Capture inputs;          // the function reads these; without it the state at the first call is a constant
  Capture outputs;         // the function changes these; they are updated after each call
  bool shapeless = false;  // as in MLX, but other shapes always cause a new trace, which costs some microseconds per operation
};

// A function that is called once for each combination of shapes, element types and `constants`, and whose operations then run
// without being built again: a call costs as much as building one operation. Arrays of one element that it creates or uses in
// addition to its arguments become constants, larger ones inputs.
class SDX_API CompiledFunction {
 public:
  CompiledFunction(ArraysFunction fun, CompileOptions options);
  // `constants`: other values that the function's result depends on. If they change, the function is traced again.
  std::vector<array> operator()(const std::vector<array>& args, std::span<const std::uint64_t> constants = {}) const;
  // Number of times the function was traced.
  std::size_t traces() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};
SDX_API CompiledFunction compile(ArraysFunction fun, CompileOptions options = {});

// While compilation is disabled, in the whole process, compiled functions call the original function each time.
SDX_API void enable_compile();
SDX_API void disable_compile();

}  // namespace sdx::array
