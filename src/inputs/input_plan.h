#pragma once
// Inputs for trying out a model.

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <sdx/session.hpp>

#include "inputs/index_bounds.h"
#include "inputs/shapes.h"

namespace sdx::inputs {

struct InputRequest {
  NamedValues given;
  std::vector<std::pair<std::string, Shape>> shapes;  // of inputs to make up; the others' follow from the model
  Dimensions dimensions;
  std::int64_t batch = 0;  // 0: as the inputs come
};

struct PlannedInput {
  std::string name, type;  // "float32", of what is not a tensor "sequence(float32) of 4"
  Shape shape;
};

// The inputs of one batch size, as far as they are the same for all backends.
struct InputPlan {
  std::int64_t batch = 1;
  NamedValues given;
  std::vector<std::pair<std::string, Shape>> shapes;  // of those to make up
  std::vector<PlannedInput> inputs;                   // both kinds, in the model's order
  std::vector<std::string> notes;
  IndexBounds bounds;       // of those to make up, where the model was looked at
  bool overridden = false;  // the model's file declares another batch size
};

// Throws Error(invalid_argument) for names that the model does not have (with the closest match), where it has no batch axis, and
// for inputs that cannot be made up.
InputPlan plan_inputs(const std::vector<ValueSpec>& specs, const InputRequest& request);

// The bounds of those inputs that are to be made up; reads the model where one of them is of integers.
IndexBounds bounds_of(const std::filesystem::path& model, const SessionOptions& options, const std::vector<ValueSpec>& specs,
                      const NamedValues& given, const std::vector<std::pair<std::string, Shape>>& shapes);

// Returns `given`, and made-up values of these shapes for the other inputs. The same seed gives the same values on every machine.
NamedValues with_made_up(const std::vector<ValueSpec>& specs, NamedValues given,
                         const std::vector<std::pair<std::string, Shape>>& shapes, std::uint64_t seed, const IndexBounds& bounds);

// A note for errors of a run about made-up inputs: "the inputs 'ids' (integers 0 to 1) and ... were made up: ...". "" if none of
// them is of integers, since other numbers suit every model.
std::string made_up_note(const std::vector<ValueSpec>& specs, const std::vector<std::pair<std::string, Shape>>& shapes,
                         const IndexBounds& bounds);

}  // namespace sdx::inputs
