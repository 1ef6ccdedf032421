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

#include <fstream>
#include <sstream>
#include <string>

#include "base/error.h"
#include "ops/infer.h"
#include "passes/pass.h"
#include "providers/cpu/cpu_provider.h"
#include "support/graph_text.h"

namespace {

struct Case {
  std::string name, passes, graph, expected;
};

std::vector<Case> read_cases(const std::string& file) {
  std::ifstream in(file);
  if (!in) sdx::fail(sdx::ErrorCode::io, "cannot read '{}'", file);
  std::vector<Case> cases;
  bool after = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("== ")) {
      cases.push_back({line.substr(3), {}, {}, {}});
      after = false;
    } else if (cases.empty()) {
      continue;  // what the file is about
    } else if (line == "--") {
      after = true;
    } else if (line.starts_with("pass ") && !after) {
      cases.back().passes = line.substr(5);
    } else if (!line.empty()) {
      (after ? cases.back().expected : cases.back().graph) += line + "\n";
    }
  }
  return cases;
}

const sdx::Pass& pass_of(const Case& c) {
  static const std::vector<sdx::Pass> all = [] {
    std::vector<sdx::Pass> list(sdx::passes().begin(), sdx::passes().end());
    const auto own = sdx::cpu::provider().passes();
    list.insert(list.end(), own.begin(), own.end());
    return list;
  }();
  return sdx::find_pass(c.passes, all);
}

// What the case's pass makes of its graph; "unchanged\n" where it says that it changed nothing.
std::string result_of(const Case& c) {
  sdx::Graph graph = sdx::testing::parse_model(c.graph).graph;
  sdx::ops::infer_in_place(graph);
  const std::string before = graph.dump();
  const sdx::Pass& pass = pass_of(c);
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

int main(int argc, char** argv) {
  try {
    int failures = 0;
    bool show = false;
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      if (argument == "--show") {
        show = true;
      } else {
        failures += run_file(argument, show);
      }
    }
    return failures == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    fmt::print("error: {}\n", e.what());
    return 1;
  }
}
