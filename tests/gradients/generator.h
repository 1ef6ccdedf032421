#pragma once
// Draws one graph, statement by statement: each is run when it is drawn, and dropped where it fails or its values are not tame.

#include <fmt/format.h>

#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "gradients/random_graph.h"

namespace sdx::gradient_tests {

class Generator {
 public:
  explicit Generator(std::uint64_t number) : random_(number * 7919 + 1) {}

  RandomGraph run();

  // 0 to n - 1.
  std::int64_t below(std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random_); }
  bool chance(double p) { return std::uniform_real_distribution<double>(0, 1)(random_) < p; }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<std::int64_t>(list.size()))];
  }

  const Shape& shape(const std::string& v) const { return graph_.values.at(v).shape(); }
  std::int64_t rank(const std::string& v) const { return static_cast<std::int64_t>(shape(v).size()); }
  // A value of floats; of that rank, which may be made for it.
  std::string pick();
  std::string pick(std::int64_t rank);
  // One that may be combined with `v` by broadcasting.
  std::string partner(const std::string& v);
  std::string fresh(const Shape& shape, double low = -1, double high = 1);
  std::string ints(const Shape& shape, const std::vector<std::int64_t>& values, const char* type = "int64");
  std::string number(double value);
  std::int64_t axis_of(const std::string& v) { return below(rank(v)) - (chance(0.3) ? rank(v) : 0); }

  // Runs `op` with its inputs ("_": left out) and attributes, and keeps its outputs; empty when it is dropped. `body`: lines of
  // the node's graphs, which read `captures`.
  std::vector<std::string> add_many(const std::string& op, const std::vector<std::string>& inputs, std::size_t outputs,
                                    const std::string& attributes = "", const std::string& body = "",
                                    const std::vector<std::string>& captures = {});
  std::string add(const std::string& op, const std::vector<std::string>& inputs, const std::string& attributes = "");
  // pick() chooses `v` no more.
  void forget(const std::string& v) { std::erase(floats_, v); }
  // x * x + 0.5
  std::string positive(const std::string& x);

 private:
  bool accept(const Statement& s);

  std::mt19937_64 random_;
  RandomGraph graph_;
  std::vector<std::string> floats_;  // what pick() chooses from
  int next_ = 0;
};

// The families: each adds a statement, or a few.
void add_elementwise(Generator& g);
void add_reduction(Generator& g);
void add_shape_operation(Generator& g);
void add_indexing(Generator& g);
void add_product(Generator& g);
void add_convolution(Generator& g);
void add_normalisation(Generator& g);
void add_loss(Generator& g);
void add_control_flow(Generator& g);
void add_recurrent(Generator& g);

std::string list(const std::vector<std::int64_t>& values);  // "[1, 2]"

}  // namespace sdx::gradient_tests
