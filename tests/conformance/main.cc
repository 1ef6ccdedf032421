// Runs test cases in ONNX's layout, each in a process of its own, so that neither a crash nor a hang ends the run.

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <regex>
#include <sdx/session.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "conformance/case.h"
#include "conformance/interpreter.h"
#include "ops/op.h"

namespace {

namespace fs = std::filesystem;
using sdx::testing::Outcome;

struct Options {
  std::vector<fs::path> cases;
  std::string filter;
  std::vector<std::string> ignore_files{SDX_IGNORE_FILE};
  unsigned timeout = 120;  // seconds a case
  bool verbose = false;
  bool in_process = false;  // for debuggers
  std::string engine = "session";
};

[[noreturn]] void usage() {
  fmt::print(stderr,
             "usage: sdx_conformance [--list FILE] [--filter REGEX] [--ignore FILE] [--timeout SECONDS] [--engine "
             "session|interpreter|both] [--in-process] [--verbose] "
             "[FOLDER...]\n"
             "A folder holds model.onnx and test_data_set_*, or folders that do. FILE lists folders, one a line.\n");
  std::exit(2);
}

// `path` itself when it is a case; else every case right below it.
void add_cases(const fs::path& path, std::vector<fs::path>& out) {
  if (!fs::is_directory(path) || fs::exists(path / "model.onnx")) {
    out.push_back(path);
    return;
  }
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (fs::exists(entry.path() / "model.onnx") || entry.path().extension() == ".onnx") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  out.insert(out.end(), found.begin(), found.end());
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : (usage(), std::string()); };
    if (arg == "--list") {
      std::ifstream file(value());
      for (std::string line; std::getline(file, line);) {
        if (!line.empty()) add_cases(line, o.cases);
      }
    } else if (arg == "--filter") {
      o.filter = value();
    } else if (arg == "--ignore") {
      o.ignore_files.push_back(value());
    } else if (arg == "--timeout") {
      o.timeout = static_cast<unsigned>(std::strtoul(value().c_str(), nullptr, 10));
    } else if (arg == "--engine") {
      o.engine = value();
      if (o.engine != "session" && o.engine != "interpreter" && o.engine != "both") usage();
    } else if (arg == "--verbose") {
      o.verbose = true;
    } else if (arg == "--in-process") {
      o.in_process = true;
    } else if (arg.starts_with("--")) {
      usage();
    } else {
      add_cases(arg, o.cases);
    }
  }
  if (o.cases.empty()) usage();
  return o;
}

// Lines "name reason"; '#' starts a comment.
std::map<std::string, std::string> read_ignored(const std::vector<std::string>& paths) {
  std::map<std::string, std::string> out;
  for (const std::string& path : paths) {
    std::ifstream file(path);
    if (!file) {
      fmt::print(stderr, "cannot read '{}'\n", path);
      std::exit(2);
    }
    for (std::string line; std::getline(file, line);) {
      if (line.empty() || line[0] == '#') continue;
      const std::size_t space = line.find(' ');
      out.emplace(line.substr(0, space), space == std::string::npos ? "" : line.substr(space + 1));
    }
  }
  return out;
}

std::vector<sdx::Value> run_session(const sdx::Model& model, const std::vector<sdx::Value>& inputs) {
  const sdx::Session session = sdx::Session::open(model.path);
  sdx::NamedValues named;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].empty()) named.add(model.graph.value(model.graph.inputs()[i]).name, inputs[i]);
  }
  const sdx::NamedValues outputs = session.run(named);
  std::vector<sdx::Value> out;
  for (const std::string& name : model.graph.output_names()) out.push_back(outputs.at(name));
  return out;
}

std::vector<sdx::Value> run_both(const sdx::Model& model, const std::vector<sdx::Value>& inputs) {
  const auto fast = run_session(model, inputs);
  const auto plain = sdx::testing::interpret(model.graph, inputs);
  for (std::size_t i = 0; i < fast.size(); ++i) {
    const std::string d = sdx::testing::difference(fast[i], plain.at(i));
    if (!d.empty()) sdx::fail(sdx::ErrorCode::runtime_failure, "session and interpreter differ in output {}: {}", i, d);
  }
  return fast;
}

Outcome execute(const fs::path& path, const std::string& engine) {
  return sdx::testing::run_case(path, [&](const sdx::Model& model, std::vector<sdx::Value> inputs) {
    if (engine == "interpreter") return sdx::testing::interpret(model.graph, std::move(inputs));
    return engine == "both" ? run_both(model, inputs) : run_session(model, inputs);
  });
}

Outcome run_in_child(const fs::path& path, const std::string& engine, unsigned timeout) {
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) return {Outcome::Kind::failed, "cannot make a pipe"};
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child < 0) return {Outcome::Kind::failed, "cannot fork"};
  if (child == 0) {
    ::close(pipe_ends[0]);
    ::alarm(timeout);
    const Outcome outcome = execute(path, engine);
    const std::string text = std::to_string(static_cast<int>(outcome.kind)) + outcome.reason;
    std::size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t n = ::write(pipe_ends[1], text.data() + sent, text.size() - sent);
      if (n <= 0) break;
      sent += static_cast<std::size_t>(n);
    }
    ::_exit(0);
  }
  ::close(pipe_ends[1]);
  std::string text;
  char buffer[4096];
  ssize_t n = 0;
  while ((n = ::read(pipe_ends[0], buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<std::size_t>(n));
  ::close(pipe_ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return {Outcome::Kind::failed,
            signal == SIGALRM ? fmt::format("ran longer than {} s", timeout) : fmt::format("crashed: {}", ::strsignal(signal))};
  }
  if (text.empty()) return {Outcome::Kind::failed, fmt::format("exited with status {}", WEXITSTATUS(status))};
  return {static_cast<Outcome::Kind>(text[0] - '0'), text.substr(1)};
}

std::string one_line(std::string text) {
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

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const auto ignored = read_ignored(options.ignore_files);
  const std::regex filter(options.filter);
  sdx::ops::table();  // built once, before forking
  int passed = 0;
  int failed = 0;
  int skipped = 0;
  for (const fs::path& path : options.cases) {
    const std::string name = sdx::testing::case_name(path);
    if (!options.filter.empty() && !std::regex_search(name, filter)) continue;
    Outcome outcome = options.in_process ? execute(path, options.engine) : run_in_child(path, options.engine, options.timeout);
    const auto known = ignored.find(name);
    if (known != ignored.end()) {
      if (outcome.kind == Outcome::Kind::passed) {
        outcome = {Outcome::Kind::failed, "now passes: remove it from the list of ignored cases"};
      } else {
        outcome = {Outcome::Kind::skipped, known->second};
      }
    }
    switch (outcome.kind) {
      case Outcome::Kind::passed:
        ++passed;
        if (options.verbose) fmt::print("PASS {}\n", name);
        break;
      case Outcome::Kind::failed:
        ++failed;
        fmt::print("FAIL {}: {}\n", name, one_line(outcome.reason));
        break;
      case Outcome::Kind::skipped:
        ++skipped;
        if (options.verbose) fmt::print("SKIP {}: {}\n", name, one_line(outcome.reason));
        break;
    }
  }
  fmt::print("{} passed, {} failed, {} skipped\n", passed, failed, skipped);
  return failed == 0 ? 0 : 1;
}
