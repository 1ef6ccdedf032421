#pragma once
// Models with the gradients of what they compute: the function is the sum of all float outputs' elements, each weighted by a
// random number, and is differentiated by the inputs that vary.

#include <random>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "graph/graph.h"

namespace sdx::gradient_tests {

// Values for the inputs, and which of them vary.
struct Point {
  NamedValues values;
  std::vector<std::string> varying;
};

Tensor random_tensor(const Shape& shape, double low, double high, std::mt19937_64& random);

Tensor converted(const Tensor& t, DataType elem);

// The extents of the inputs that the model declares: as they are, none, or one symbol for each number above 1.
enum class Extents { declared, unknown, symbols };

struct Options {
  Extents extents = Extents::declared;
  bool second = false;  // the gradient of the weighted gradient
  bool fused = false;   // by append_gradients(), with operators of com.microsoft
};

struct Built {
  Session session;
  std::string target;                  // a scalar
  std::vector<std::string> gradients;  // by varying input
};

// `model` is consumed; its inputs have no defaults. Throws what sessions throw.
Built build(Model model, const Point& p, const Options& options, std::mt19937_64& random);

Session open(const Model& model);
double target_at(const Built& built, const NamedValues& values);

}  // namespace sdx::gradient_tests
