// Runs test cases in ONNX's layout and compares with a list of those that may fail.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "base/error.h"
#include "conformance/suite.h"
#include "ops/op.h"

namespace {

namespace fs = std::filesystem;
using namespace sdx::testing;

constexpr int kSkipped = 77;  // CTest's SKIP_RETURN_CODE

struct Options {
  std::vector<fs::path> cases;
  std::string filter;
  std::string ignore_file = SDX_IGNORE_FILE;
  std::string release;
  std::vector<Way> ways;
  unsigned timeout = 120;  // seconds a case
  bool verbose = false;
  bool in_process = false;  // for debuggers
};

[[noreturn]] void usage() {
  std::string ways;
  for (const std::string& name : way_names()) ways += " " + name;
  fmt::print(stderr,
             "usage: sdx_conformance [--list FILE] [--filter REGEX] [--ignore FILE] [--release NAME] [--timeout SECONDS] [--way "
             "NAME]... "
             "[--in-process] [--verbose] [FOLDER...]\n"
             "A folder holds model.onnx and test_data_set_*, or folders that do. FILE lists folders, one a line.\n"
             "--release: which release the data are of, for what the list of ignored cases says of a single one.\n"
             "Ways:{}; 'all' is all that this machine can. Exit code 77 when it can do none of those asked for.\n",
             ways);
  std::exit(2);
}

void add_cases(const fs::path& path, Options& o) {
  const auto found = find_cases(path);
  o.cases.insert(o.cases.end(), found.begin(), found.end());
}

void add_ways(const std::string& name, Options& o) {
  if (name != "all") return o.ways.push_back(way(name));
  for (const std::string& each : way_names()) {
    if (possible(way(each))) o.ways.push_back(way(each));
  }
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : (usage(), std::string()); };
    if (arg == "--list") {
      std::ifstream file(value());
      for (std::string line; std::getline(file, line);) {
        if (!line.empty()) add_cases(line, o);
      }
    } else if (arg == "--filter") {
      o.filter = value();
    } else if (arg == "--ignore") {
      o.ignore_file = value();
    } else if (arg == "--release") {
      o.release = value();
    } else if (arg == "--timeout") {
      o.timeout = static_cast<unsigned>(std::strtoul(value().c_str(), nullptr, 10));
    } else if (arg == "--way") {
      add_ways(value(), o);
    } else if (arg == "--verbose") {
      o.verbose = true;
    } else if (arg == "--in-process") {
      o.in_process = true;
    } else if (arg.starts_with("--")) {
      usage();
    } else {
      add_cases(arg, o);
    }
  }
  if (o.cases.empty()) usage();
  if (o.ways.empty()) o.ways.push_back(way("default"));
  return o;
}

std::string one_line(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += ";";
    } else if (!(c == ' ' && !out.empty() && out.back() == ' ')) {
      out += c;
    }
  }
  return out;
}

// Returns the number of failures.
int run_way(const Options& options, const Way& way, const Ignored& ignored) {
  const std::regex filter(options.filter);
  int counts[3] = {};  // by Outcome::Kind
  for (const fs::path& path : options.cases) {
    const std::string name = case_name(path);
    if (!options.filter.empty() && !std::regex_search(name, filter)) continue;
    const Outcome seen = options.in_process ? run_here(path, way) : run_in_child(path, way, options.timeout);
    // The interpreter compares no inputs with the model's declarations, so that it passes cases whose data disagree with those.
    const bool plain_pass = way.interpreter && seen.kind == Outcome::Kind::passed;
    const Outcome outcome = plain_pass ? seen : judge(ignored, name, seen);
    ++counts[static_cast<int>(outcome.kind)];
    if (outcome.kind == Outcome::Kind::failed) {
      fmt::print("FAIL {} ({}): {}\n", name, way.name, one_line(outcome.reason));
    } else if (options.verbose) {
      fmt::print("{} {} ({}){}{}\n", outcome.kind == Outcome::Kind::passed ? "PASS" : "SKIP", name, way.name,
                 outcome.reason.empty() ? "" : ": ", one_line(outcome.reason));
    }
  }
  fmt::print("{}: {} passed, {} failed, {} skipped\n", way.name, counts[0], counts[1], counts[2]);
  return counts[1];
}

int run(int argc, char** argv) {
  const Options options = parse(argc, argv);
  std::ifstream file(options.ignore_file);
  if (!file) sdx::fail(sdx::ErrorCode::io, "cannot read '{}'", options.ignore_file);
  const Ignored ignored = read_ignored(file, options.release);
  sdx::ops::table();  // built once, before forking
  int failures = 0;
  bool any = false;
  for (const Way& way : options.ways) {
    if (!possible(way)) continue;
    any = true;
    failures += run_way(options, way, ignored);
  }
  if (!any) fmt::print("this machine can do none of the ways asked for\n");
  return !any ? kSkipped : failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "error: {}\n", e.what());
    return 2;
  }
}
