#pragma once
// Several elementwise functions in one pass over memory: tile by tile, in tiles that stay in the first two levels of the cache.

#include <cstdint>
#include <span>
#include <vector>

#include <sdx/dtype.hpp>
#include <sdx/tensor.hpp>

#include "kernels/cpu/elements/functions.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/elementwise/math.h"
#include "kernels/cpu/rows/reduce.h"

namespace sdx::cpu {

// One function. Operands are numbered: inputs of the chain first, then results of steps.
struct ChainStep {
  enum class Kind : std::uint8_t { unary, math, binary, remainder, pair, map, select, cast } kind = Kind::unary;
  UnarySpec spec;
  Math math = Math::exp;
  Binary binary = Binary::add;
  Remainder remainder = Remainder::fmod;
  BinaryFn pair = BinaryFn::add;
  UnaryFn map = UnaryFn::negative;
  DataType elem = DataType::float32;          // of pair and map, which are plain functions
  DataType from = DataType::undefined, to{};  // of cast
  int operands = 1;
  std::int32_t operand[3] = {0, 0, 0};
  std::uint8_t bytes = 4;  // of an element of the result
};

// The computation. Results equal, bit for bit, those of the functions called one after the other.
struct Chain {
  static constexpr std::size_t kMostInputs = 24, kMostSteps = 64, kMostOutputs = 16;

  // A float32 step's result reduced over rows: one element for each.
  struct Fold {
    Reduce op = Reduce::sum;  // one that reduces_in_parts()
    std::uint32_t step = 0;
  };

  std::vector<std::uint8_t> input_bytes;  // of an element
  std::vector<ChainStep> steps;
  std::vector<std::uint32_t> outputs;  // steps whose results are outputs
  std::vector<Fold> folds;             // further outputs, after those
  std::int64_t row = 1;                // elements of a row: the results' shape without its first dimensions
};

// Whether a chain of these steps can be computed row by row, as folds require: several rows must fit into the cache, and vectors
// must hold the same elements as in the single functions.
bool can_fold(std::span<const ChainStep> steps, std::int64_t count, std::int64_t row);

// A chain for given shapes. Immutable.
class ChainPlan {
 public:
  // `inputs` broadcast to `out`, the shape of every result but the folds'; ranks up to 8.
  ChainPlan(const Chain& chain, std::span<const Shape> inputs, const Shape& out);

  // Thread-safe, split over current_pool(). Pointers are aligned to their elements. An output may share the memory of an input
  // with the shape of the results and elements of the same width.
  void run(const void* const* inputs, void* const* outputs) const;

 private:
  // The way in which an input is read: as it is; its single element; repeating every `period` elements; or through `dims`.
  enum class Form : std::uint8_t { full, single, periodic, general };
  struct Input {
    Form form = Form::full;
    std::int64_t period = 0;
    std::vector<std::int64_t> dims, steps;  // merged; general
    std::uint32_t room = 0;                 // periodic and general: offset of its room in the scratch, in bytes
  };
  struct Operand {
    const char* data;
    std::int64_t step;
  };
  class Worker;

  void settle_rooms();
  void settle_tile();
  std::int64_t tiles() const;

  const Chain& chain_;
  std::vector<Input> inputs_;
  std::vector<std::int32_t> room_of_step_;    // which room holds a step's result; -1: its output does
  std::vector<std::int32_t> output_of_step_;  // -1: none
  std::vector<std::uint32_t> last_read_;      // by input: the last step that reads it
  std::int32_t rooms_ = 0;                    // not counting one for each output and one for each operand
  std::int64_t count_ = 0, grain_ = 0;
  std::int64_t tile_ = 0;   // elements: of whole rows, or of a part of a row
  std::int64_t parts_ = 0;  // tiles per row; 0: rows do not matter, or tiles have whole rows
  std::size_t room_bytes_ = 0, scratch_bytes_ = 0;
};

}  // namespace sdx::cpu
