// Whether passes take time in proportion to the graph: sdx_pass_growth FILE...
//
// The graph of each pass case (see run_pass_cases.cc) is repeated 1000 and 8000 times in one graph, on which its pass runs. Eight
// times the nodes may take twenty times the processor time; the square would be 64 times. Graphs of other shapes, in which one
// value has all readers, or one node follows the other, go through all passes. What takes less than a quarter of a second is not
// looked at.

#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "base/error.h"
#include "ops/infer.h"
#include "passes/pass.h"
#include "support/all_passes.h"
#include "support/graph_text.h"
#include "support/text_cases.h"

namespace {

using sdx::Graph;
using sdx::kNoValue;
using sdx::Node;
using sdx::ValueId;
using sdx::testing::all_passes;

constexpr int kFew = 1000, kMany = 8000, kTries = 3;
constexpr double kMostRatio = 20, kLeastSeconds = 0.25;

// `part` side by side with itself.
Graph repeated(const Graph& part, int times) {
  Graph whole;
  for (int i = 0; i < times; ++i) {
    const std::string suffix = "_" + std::to_string(i);
    std::vector<ValueId> twin;
    for (const sdx::ValueInfo& v : part.values()) {
      const std::string name = v.name + suffix;
      const ValueId id = v.is_input ? whole.add_input(name, v.declared) : whole.add_value(name, v.declared);
      whole.value(id).constant = v.constant;
      twin.push_back(id);
    }
    const auto rename = [&](std::vector<ValueId>& ids) {
      for (ValueId& v : ids) v = v == kNoValue ? v : twin[v];
    };
    for (const Node& n : part.nodes()) {
      Node copy = n;
      rename(copy.inputs);
      rename(copy.outputs);
      for (sdx::Subgraph& s : copy.subgraphs) rename(s.captures);
      whole.add_node(std::move(copy));
    }
    for (const ValueId v : part.outputs()) whole.add_output(twin[v]);
  }
  sdx::ops::infer_in_place(whole);
  return whole;
}

double seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

template <class Run>
double time_of(const Graph& graph, const Run& run) {
  double least = 1e9;
  for (int i = 0; i < kTries; ++i) {
    Graph g = graph;
    const double begin = seconds();
    run(g);
    least = std::min(least, seconds() - begin);
    if (least < kLeastSeconds) break;
  }
  return least;
}

// A graph of kFew parts and one of kMany.
struct Pair {
  Graph few, many;
};

// Whether it grows as it may.
template <class Run>
bool grows_evenly(const std::string& what, const Pair& graphs, const Run& run) {
  const double many = time_of(graphs.many, run);
  if (many < kLeastSeconds) return true;
  const double few = time_of(graphs.few, run);
  const bool good = many <= kMostRatio * few;
  fmt::print("{} {}: {:.3f} s, {} times as much {:.3f} s\n", good ? "    " : "FAIL", what, few, kMany / kFew, many);
  std::fflush(stdout);
  return good;
}

int run_file(const std::string& file, bool /*flag*/) {
  int failures = 0, count = 0;
  for (sdx::testing::TextCase& c : sdx::testing::read_text_cases(file)) {
    const sdx::Pass& pass = sdx::find_pass(sdx::testing::take_lines(c.given, "pass ").at(0), all_passes());
    const Graph part = sdx::testing::parse_model(sdx::testing::text_of(c.given)).graph;
    try {
      repeated(part, 1);
    } catch (const sdx::Error&) {
      continue;  // symbols of a graph of its own
    }
    ++count;
    const Pair graphs{repeated(part, kFew), repeated(part, kMany)};
    const bool good = grows_evenly(std::string(pass.name) + ": " + c.name, graphs, [&](Graph& g) { sdx::run_pass(g, pass); });
    failures += good ? 0 : 1;
  }
  return count == 0 ? 1 : failures;
}

struct Shape {
  const char* name;
  const char *begin, *each, *end;  // # stands for the number, < for the one before
};

// The text of `each`, as often as `times` says; in `end` @ stands for the names of all values v#.
std::string text_of(const Shape& s, int times) {
  const auto with = [](std::string text, char mark, const std::string& by) {
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + by.size())) text.replace(at, 1, by);
    return text;
  };
  std::string text = s.begin, names;
  for (int i = 1; i <= times; ++i) {
    text += with(with(s.each, '#', std::to_string(i)), '<', std::to_string(i - 1)) + "\n";
    names += (i > 1 ? ", v" : "v") + std::to_string(i);
  }
  return text + with(with(s.end, '@', names), '#', std::to_string(times)) + "\n";
}

constexpr Shape kShapes[] = {
    {"readers of one value joined by Sum", "input x: float32[2,4]\n", "v# = Relu(x)", "y = Sum(@)\noutput y"},
    {"different readers of one value joined by Sum", "input x: float32[2,4]\n", "v# = Elu(x) {alpha=#.5}",
     "y = Sum(@)\noutput y"},
    {"readers of one value joined by Concat", "input x: float32[2,4]\n", "v# = Elu(x) {alpha=#.5}",
     "y = Concat(@) {axis=0}\noutput y"},
    {"Dropouts that name their masks", "input v0: float32[2,4]\n", "r# = Elu(v<) {alpha=#.5}\nv#, m# = Dropout(r#)", "output v#"},
    {"Identities in a row", "input v0: float32[2,4]\n", "v# = Identity(v<)", "output v#"},
    {"Identities side by side", "input x: float32[2,4]\n", "r# = Elu(x) {alpha=#.5}\nv# = Identity(r#)", "y = Sum(@)\noutput y"},
    {"transpositions in a row", "input v0: float32[2,4,8]\n", "r# = Transpose(v<) {perm=[2,0,1]}\nv# = Elu(r#) {alpha=#.5}",
     "output v#"},
    {"equal constants", "input v0: float32[4]\n", "constant c#: float32[4] 2\nv# = Mul(v<, c#)", "output v#"},
    {"layers in a row", "input v0: float32[2,4]\nconstant w: float32[4,4] 0.5\nconstant b: float32[4] 1\n",
     "p# = MatMul(v<, w)\nr# = Add(p#, b)\nv# = Relu(r#)", "output v#"},
    {"convolutions with a residual in a row", "input v0: float32[1,4,3,3]\nconstant w: float32[4,4,1,1] 0.5\n",
     "p# = Conv(v<, w)\nr# = Add(p#, v<)\nv# = Relu(r#)", "output v#"},
    {"outputs", "input x: float32[2,4]\n", "r# = Elu(x) {alpha=#.5}\nv# = Identity(r#)\noutput v#", ""},
};

bool run_shape(const Shape& s) {
  const auto make = [&](int n) {
    Graph g = sdx::testing::parse_model(text_of(s, n)).graph;
    sdx::ops::infer_in_place(g);
    return g;
  };
  const Pair graphs{make(kFew), make(kMany)};
  bool good = grows_evenly(std::string("all passes: ") + s.name, graphs, [](Graph& g) {
    sdx::PassOptions options;
    options.last = sdx::cpu::provider().passes();
    sdx::run_passes(g, options);
  });
  for (const sdx::Pass& pass : all_passes()) {
    good = grows_evenly(std::string(pass.name) + ": " + s.name, graphs, [&](Graph& g) { sdx::run_pass(g, pass); }) && good;
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  int failures = 0;
  for (const Shape& s : kShapes) failures += run_shape(s) ? 0 : 1;
  return sdx::testing::run_files(argc, argv, "", run_file) + failures == 0 ? 0 : 1;
}
