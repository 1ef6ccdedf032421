// Runs the cases of graph passes: sdx_pass_tests [--show] FILE...
//
// A file holds cases, each a pass, a graph (see support/graph_text.h) and the dump expected after the pass:
//
//   == relu twice is relu                 the name
//   pass share-common
//   input x: float32[2]
//   ...
//   --
//   graph test
//     input %x: float32[2]
//   ...
//
// `unchanged` in place of the dump says that the pass must leave the graph alone. --show prints the graphs that passes made.

#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "ops/infer.h"
#include "passes/pass.h"
#include "support/all_passes.h"
#include "support/graph_text.h"
#include "support/text_cases.h"

namespace {

struct Case {
  std::string name, passes, graph, expected;
};

std::vector<Case> read_cases(const std::string& file) {
  std::vector<Case> cases;
  for (sdx::testing::TextCase& c : sdx::testing::read_text_cases(file)) {
    const std::vector<std::string> passes = sdx::testing::take_lines(c.given, "pass ");
    cases.push_back(
        {c.name, passes.empty() ? "" : passes.back(), sdx::testing::text_of(c.given), sdx::testing::text_of(c.expected)});
  }
  return cases;
}

// What the case's pass makes of its graph; "unchanged\n" where it says that it changed nothing.
std::string result_of(const Case& c) {
  sdx::Graph graph = sdx::testing::parse_model(c.graph).graph;
  sdx::ops::infer_in_place(graph);
  const std::string before = graph.dump();
  const sdx::Pass& pass = sdx::find_pass(c.passes, sdx::testing::all_passes());
  const bool changed = sdx::run_pass(graph, pass);
  graph.verify();
  if (!changed) return graph.dump() == before ? "unchanged\n" : "changed, which the pass denies:\n" + graph.dump();
  if (sdx::run_pass(graph, pass)) {
    const std::string once = graph.dump();
    if (sdx::run_pass(graph, pass) && sdx::run_pass(graph, pass)) return "never settles; at last:\n" + once;
  }
  return graph.dump();
}

int run_file(const std::string& file, bool show) {
  int failures = 0;
  const std::vector<Case> cases = read_cases(file);
  for (const Case& c : cases) {
    std::string received;
    try {
      received = result_of(c);
    } catch (const sdx::Error& e) {
      received = fmt::format("error: {}\n", e.what());
    }
    if (show) fmt::print("== {}\n{}\n", c.name, received);
    if (received == c.expected) continue;
    ++failures;
    if (!show) fmt::print("FAIL {}: {}\n-- expected\n{}-- received\n{}\n", file, c.name, c.expected, received);
  }
  fmt::print("{}: {} cases, {} failures\n", file, cases.size(), failures);
  return cases.empty() ? 1 : failures;
}

}  // namespace

int main(int argc, char** argv) { return sdx::testing::run_files(argc, argv, "--show", run_file); }
