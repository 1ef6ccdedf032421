#include "compare/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/child.h"
#include "base/system/fork.h"
#include "base/system/process.h"
#include "base/text/json_text.h"
#include "session/open.h"
#include "session/selection.h"
#include "tensor/pb.h"

namespace sdx::compare {
namespace {

using nlohmann::json;

// The advice for callers that can use --fallback warn (allow_fallback), in place of advice about `strict`.
constexpr std::string_view kInstead = ". --fallback warn compares the next provider";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

void apply(ProbeSide& side, const std::string& setting) {
  const auto equals = setting.find('=');
  const std::string key = setting.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : setting.substr(equals + 1);
  if (setting == "no-optimize") {
    side.session.optimize = false;
  } else if (key == "threads" && equals != std::string::npos) {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), side.session.threads);
    if (error != std::errc{} || end != value.data() + value.size() || side.session.threads < 0 || side.session.threads > 4096)
      fail(ErrorCode::invalid_argument, "backend '{}': threads must be 0 to 4096, received '{}'", side.text, value);
  } else if (key == "disable" && equals != std::string::npos) {
    const auto passes = pass_names();
    if (std::find(passes.begin(), passes.end(), value) == passes.end()) {
      const std::string near = closest(value, passes);
      fail(ErrorCode::invalid_argument, "backend '{}': no pass '{}'{}", side.text, value,
           near.empty() ? "" : "; did you mean '" + near + "'?");
    }
    side.session.disabled_passes.push_back(value);
  } else if (key.starts_with("SDX_") && equals != std::string::npos) {
    side.environment.emplace_back(key, value);
  } else {
    fail(ErrorCode::invalid_argument,
         "backend '{}': no setting '{}'; settings: no-optimize, threads=N, disable=PASS, SDX_NAME=VALUE", side.text, setting);
  }
}

Probe run_here(const ProbeSide& side, const std::filesystem::path& model, const NamedValues& inputs,
               const std::vector<std::string>& outputs) {
  session::InternalOptions internal;
  internal.fallbacks_told_elsewhere = true;  // in the comparison's notes
  const Session session = session::open(model, side.session, internal);
  RunOptions options;
  options.outputs = outputs;
  Probe probe;
  const NamedValues results = session.run(inputs, options);
  for (const std::string& name : outputs) probe.values.push_back(results.at(name));
  probe.report = session.report();
  return probe;
}

// The message in the pipe: a line of JSON, followed by each value in ONNX's serialisation.
std::string pack(const Probe& probe) {
  std::string body;
  json kinds = json::array();
  for (const Value& v : probe.values) {
    if (v.empty()) {
      kinds.push_back({"none", 0});
      continue;
    }
    const bool map = v.is_map();
    const std::string bytes = encode_value(v, v.is_tensor() ? PbKind::tensor : map ? PbKind::map : PbKind::sequence, "value");
    kinds.push_back({v.is_tensor() ? "tensor" : map ? "map" : "sequence", bytes.size()});
    body += bytes;
  }
  json nodes = json::array();
  for (const NodeReport& n : probe.report.nodes) nodes.push_back({n.name, n.op, n.provider, n.kernel});
  const json head{{"values", kinds},
                  {"nodes", nodes},
                  {"runtime", probe.report.runtime},
                  {"providers", probe.report.providers},
                  {"fallbacks", probe.report.fallbacks}};
  return dump_json(head) + "\n" + body;
}

Probe unpack(const std::string& text, const ProbeSide& side) {
  const std::size_t line = std::min(text.find('\n'), text.size());
  const json head = json::parse(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(line));
  if (head.contains("error")) {
    throw Error(static_cast<ErrorCode>(head["code"].get<int>()),
                side.text + ": " + session::without_strict(head["error"].get<std::string>(), kInstead));
  }
  Probe probe;
  std::size_t at = line + 1;
  for (const json& item : head["values"]) {
    const auto kind = item[0].get<std::string>();
    const auto size = item[1].get<std::size_t>();
    if (kind == "none") {
      probe.values.emplace_back();
      continue;
    }
    PbSource source;
    probe.values.push_back(decode_value(std::string_view(text).substr(at, size),
                                        kind == "tensor" ? PbKind::tensor
                                        : kind == "map"  ? PbKind::map
                                                         : PbKind::sequence,
                                        source));
    at += size;
  }
  for (const json& n : head["nodes"]) {
    NodeReport node;
    node.name = n[0];
    node.op = n[1];
    node.provider = n[2];
    node.kernel = n[3];
    probe.report.nodes.push_back(std::move(node));
  }
  probe.report.runtime = head["runtime"];
  probe.report.providers = head["providers"];
  probe.report.fallbacks = head["fallbacks"];
  return probe;
}

std::string error_head(ErrorCode code, const std::string& message) {
  const json head{{"error", message}, {"code", static_cast<int>(code)}};
  return dump_json(head) + "\n";
}

// What the child says.
std::string answer(const ProbeSide& side, const std::filesystem::path& model, const NamedValues& inputs,
                   const std::vector<std::string>& outputs) {
  for (const auto& [name, value] : side.environment) set_environment(name.c_str(), value.c_str());
  try {
    return pack(run_here(side, model, inputs, outputs));
  } catch (const Error& e) {
    return error_head(e.code(), e.what());
  } catch (const std::bad_alloc&) {
    return error_head(ErrorCode::out_of_memory, "the machine ran out of memory");
  } catch (const std::exception& e) {
    return error_head(ErrorCode::internal, e.what());
  }
}

}  // namespace

ProbeSide parse_side(const std::string& text, const SessionOptions& common) {
  ProbeSide side;
  side.text = text;
  side.session = common;
  const std::vector<std::string> parts = split(text, '+');
  side.session.providers = split(parts[0], ',');
  if (parts[0].empty()) fail(ErrorCode::invalid_argument, "a backend's name is empty in '{}'", text);
  for (std::size_t i = 1; i < parts.size(); ++i) apply(side, parts[i]);
  return side;
}

Probe run_probe(const ProbeSide& side, const std::filesystem::path& model, const NamedValues& inputs,
                const std::vector<std::string>& outputs) {
  if (!can_fork()) {
    if (!side.environment.empty()) {
      fail(ErrorCode::invalid_argument,
           "backend '{}': this process has several threads, so no other can be forked from it to set {}", side.text,
           side.environment.front().first);
    }
    return run_here(side, model, inputs, outputs);
  }
  constexpr std::chrono::hours kNoLimit{24 * 365};
  const ChildEnd end = run_in_child([&](const auto& say) { say(answer(side, model, inputs, outputs)); }, kNoLimit);
  if (end.signal != 0 || end.exit_code != 0 || end.said.empty()) {
    fail(ErrorCode::internal, "{}: its process ended {}", side.text,
         end.signal != 0 ? fmt::format("by signal {} ({})", end.signal, end.signal_name)
                         : fmt::format("with exit code {}", end.exit_code));
  }
  return unpack(end.said, side);
}

}  // namespace sdx::compare
