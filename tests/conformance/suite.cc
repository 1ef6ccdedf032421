#include "conformance/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sdx/provider.hpp>
#include <sdx/session.hpp>

#include "base/error.h"
#include "base/system/child.h"
#include "base/system/cpu_features.h"
#include "base/system/process.h"
#include "conformance/interpreter.h"
#include "onnx/writer.h"

namespace sdx::testing {
namespace {

namespace fs = std::filesystem;

bool is_case(const fs::path& path) { return fs::exists(path / "model.onnx") || path.extension() == ".onnx"; }

SessionOptions options_of(const Way& way) {
  SessionOptions options;
  options.optimize = way.optimize;
  options.threads = way.threads;
  if (way.vulkan) {
    options.providers = {"vulkan", "cpu"};
    options.provider_options = {{"vulkan", {{"device_type", "CPU"}}}};
  }
  return options;
}

// In a child: a driver that this process has opened would be of no use to those of the cases.
bool has_software_driver() {
  constexpr std::chrono::seconds kMost{60};
  const ChildEnd end = sdx::run_in_child(
      [](const auto& say) {
        for (const ProviderInfo& p : providers()) {
          const auto on_cpu = [](const std::string& device) { return device.starts_with("CPU: "); };
          if (p.name == "vulkan" && std::any_of(p.devices.begin(), p.devices.end(), on_cpu)) say("yes");
        }
      },
      kMost);
  return end.said == "yes";
}

std::vector<Value> run_session(const Model& model, const std::vector<Value>& inputs, const Way& way) {
  const Session session = Session::open(model.path, options_of(way));
  NamedValues named;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].empty()) named.add(model.graph.value(model.graph.inputs()[i]).name, inputs[i]);
  }
  const NamedValues outputs = session.run(named);
  std::vector<Value> out;
  for (const std::string& name : model.graph.output_names()) out.push_back(outputs.at(name));
  return out;
}

// Twice, because a second run finds what the first one left.
NamedValues run_bytes(const Model& model, const NamedValues& inputs, const Way& way) {
  const std::string bytes = write_model(model);
  const Session session = Session::from_bytes(std::as_bytes(std::span<const char>(bytes.data(), bytes.size())), options_of(way));
  session.run(inputs);
  return session.run(inputs);
}

}  // namespace

std::vector<fs::path> find_cases(const fs::path& path) {
  if (!fs::is_directory(path) || is_case(path)) return {path};
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (is_case(entry.path())) {
      found.push_back(entry.path());
    } else if (entry.is_directory()) {
      for (const auto& below : fs::directory_iterator(entry.path())) {
        if (is_case(below.path())) found.push_back(below.path());
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

Ignored read_ignored(std::istream& text, std::string_view release) {
  Ignored out;
  for (std::string line; std::getline(text, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t space = line.find(' ');
    if (space == std::string::npos || space + 1 == line.size()) {
      fail(ErrorCode::invalid_argument, "ignored case '{}' has no reason: expected 'name reason'", line);
    }
    std::string name = line.substr(0, space);
    const std::size_t at = name.find('@');
    if (at != std::string::npos) {
      if (name.substr(at + 1) != release) continue;
      name.resize(at);
    }
    if (!out.emplace(name, line.substr(space + 1)).second) {
      fail(ErrorCode::invalid_argument, "ignored case '{}' is listed twice", name);
    }
  }
  return out;
}

Outcome judge(const Ignored& ignored, const std::string& name, Outcome outcome) {
  const auto known = ignored.find(name);
  if (known == ignored.end()) return outcome;
  if (outcome.kind != Outcome::Kind::passed) return {Outcome::Kind::skipped, known->second};
  return {Outcome::Kind::failed, "now passes: remove it from the list of ignored cases"};
}

std::vector<std::string> way_names() {
  return {"default", "no-passes", "reference", "two-threads", "interpreter", "readers-kept", "readers-alone",
          "vulkan",  "scalar",    "sse4",      "avx2",        "avx512",      "neon"};
}

Way way(std::string_view name) {
  Way w;
  w.name = name;
  const std::vector<std::string> names = way_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    std::string all;
    for (const std::string& n : names) all += (all.empty() ? "" : ", ") + n;
    fail(ErrorCode::invalid_argument, "no way '{}' to run a case; expected {}", name, all);
  }
  w.optimize = name != "no-passes";
  w.reference = name == "reference";
  w.interpreter = name == "interpreter";
  w.threads = name == "two-threads" ? 2 : 0;
  w.readers = name == "readers-kept" ? Readers::kept : name == "readers-alone" ? Readers::alone : Readers::none;
  w.vulkan = name == "vulkan";
  const bool plain = name == "default" || !w.optimize || w.reference || w.interpreter || w.threads != 0 || w.vulkan ||
                     w.readers != Readers::none;
  if (!plain) w.isa = name;
  return w;
}

bool possible(const Way& way) {
  if (way.vulkan) return has_software_driver();
  if (way.isa.empty()) return true;
  const std::vector<Isa>& have = supported_isas();
  return std::any_of(have.begin(), have.end(), [&](Isa isa) { return sdx::name(isa) == way.isa; });
}

Outcome run_here(const fs::path& path, const Way& way) {
  if (!way.isa.empty()) set_environment("SDX_CPU_ISA", way.isa.c_str());
  if (way.reference) set_environment("SDX_CPU_KERNEL", "reference");
  return run_case(path, [&](const Model& model, std::vector<Value> inputs) {
    if (way.interpreter) return interpret(model.graph, std::move(inputs));
    if (way.readers == Readers::none) return run_session(model, inputs, way);
    const auto run = [&](const Model& m, const NamedValues& named) { return run_bytes(m, named, way); };
    return run_with_readers(model, std::move(inputs), way.readers, run);
  });
}

Outcome run_in_child(const fs::path& path, const Way& way, unsigned timeout) {
  std::fflush(stdout);
  const ChildEnd end = sdx::run_in_child(
      [&](const auto& say) {
        const Outcome outcome = run_here(path, way);
        say(std::to_string(static_cast<int>(outcome.kind)) + outcome.reason);
      },
      std::chrono::seconds(timeout));
  if (end.too_long) return {Outcome::Kind::failed, fmt::format("ran longer than {} s", timeout)};
  if (end.signal != 0) return {Outcome::Kind::failed, "crashed: " + end.signal_name};
  if (end.said.empty()) return {Outcome::Kind::failed, fmt::format("exited with status {}", end.exit_code)};
  return {static_cast<Outcome::Kind>(end.said[0] - '0'), end.said.substr(1)};
}

}  // namespace sdx::testing
