// sdx inspect

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <sdx/sdx.hpp>

#include "base/counted.h"
#include "base/system/printable.h"
#include "base/text/json_text.h"
#include "base/text/utf8.h"
#include "cli/command.h"
#include "cli/resolve.h"
#include "cli/values/inputs.h"
#include "inspect/facts.h"

namespace sdx::cli {
namespace {

constexpr const char* kInspectExamples =
    "Examples:\n"
    "  sdx inspect model.onnx\n"
    "  sdx inspect model.onnx --json --dim batch=8\n"
    "  sdx inspect model.onnx --stage planned\n"
    "Stages: loaded (as in the file), simplified (after the passes), claimed (with providers), planned (with kernels and "
    "memory).\n";

struct InspectCommand {
  SessionFlags session;
  std::string stage;
  bool json = false;

  int run();
};

// 1234567 -> "1.23 M"
std::string short_number(double v) {
  const char* units[] = {"", " k", " M", " G", " T", " P"};
  int unit = 0;
  while (v >= 1000 && unit < 5) {
    v /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f}", v) : fmt::format("{:.2f}{}", v, units[unit]);
}

std::string spec_json(const ValueSpec& s) {
  std::string out = fmt::format("{{\"name\":{},\"type\":{},\"dtype\":{}", json_string(s.name), json_string(s.type),
                                s.dtype == DataType::undefined ? "null" : json_string(name(s.dtype)));
  out += ",\"shape\":";
  if (!s.has_shape) {
    out += "null";
  } else {
    out += '[';
    for (std::size_t i = 0; i < s.shape.size(); ++i) {
      if (i != 0) out += ',';
      if (s.shape[i] >= 0) {
        out += std::to_string(s.shape[i]);
      } else {
        out += json_or_null(s.symbols[i]);
      }
    }
    out += ']';
  }
  return out + fmt::format(",\"optional\":{}}}", s.has_default);
}

std::string specs_json(const std::vector<ValueSpec>& specs) {
  std::string out = "[";
  for (std::size_t i = 0; i < specs.size(); ++i) out += (i != 0 ? "," : "") + spec_json(specs[i]);
  return out + "]";
}

template <class Map>
std::string map_json(const Map& map) {
  std::string out = "{";
  for (const auto& [key, value] : map) {
    if (out.size() > 1) out += ',';
    out += json_string(key) + ":";
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
      out += std::to_string(value);
    } else {
      out += json_string(value);
    }
  }
  return out + "}";
}

std::string facts_json(const std::string& file, const inspect::ModelFacts& f, const Session& s) {
  const Report r = s.report();
  return fmt::format(
      "{{\"model\":{},\"file_bytes\":{},\"ir_version\":{},\"opsets\":{},\"producer_name\":{},\"producer_version\":{},\"domain\":{"
      "},"
      "\"model_version\":{},\"description\":{},\"graph\":{},\"inputs\":{},\"outputs\":{},\"nodes\":{},\"operators\":{},"
      "\"functions\":{},"
      "\"parameters\":{},\"parameter_bytes\":{},\"flops\":{},\"nodes_without_flops\":{},\"runtime\":{},\"providers\":{},"
      "\"fallbacks\":{},"
      "\"warnings\":{},\"metadata\":{}}}\n",
      json_string(file), f.file_bytes, f.ir_version, map_json(f.opsets), json_string(f.producer_name),
      json_string(f.producer_version), json_string(f.domain), f.model_version, json_string(f.description),
      json_string(f.graph_name), specs_json(s.inputs()), specs_json(s.outputs()), f.nodes, map_json(f.operators), f.functions,
      f.parameters, f.parameter_bytes, f.flops, f.nodes_without_flops, json_string(r.runtime), json_list(r.providers),
      json_list(r.fallbacks), json_list(f.warnings), map_json(f.metadata));
}

// Whole letters, in one line.
std::string shortened(const std::string& text) {
  constexpr std::size_t kMost = 200;
  if (text.size() <= kMost) return one_line(text);
  return one_line(std::string_view(text).substr(0, end_of_chars(text, kMost))) + "…";
}

std::string facts_text(const std::string& file, const inspect::ModelFacts& f, const Session& s) {
  std::string out = fmt::format("model       {} ({} bytes)\n", file, f.file_bytes);
  const std::string producer = f.producer_name + (f.producer_version.empty() ? "" : " " + f.producer_version);
  if (!producer.empty()) out += fmt::format("producer    {}\n", one_line(producer));
  if (!f.description.empty()) out += fmt::format("description {}\n", shortened(f.description));
  out += fmt::format("format      IR {}, opsets:", f.ir_version);
  for (const auto& [domain, version] : f.opsets) out += fmt::format(" {} {}", one_line(domain), version);
  out += fmt::format("\nparameters  {} ({}B)\n", short_number(static_cast<double>(f.parameters)),
                     short_number(static_cast<double>(f.parameter_bytes)));
  out += fmt::format("operations  {}{} a run\n", f.nodes_without_flops > 0 ? "at least " : "",
                     short_number(static_cast<double>(f.flops)));
  if (f.nodes_without_flops > 0)
    out += fmt::format("            ({} on shapes not known before a run; fix them with --dim)\n",
                       f.nodes_without_flops == 1 ? "1 node depends" : fmt::format("{} nodes depend", f.nodes_without_flops));
  std::string providers;
  for (const std::string& p : s.report().providers) providers += (providers.empty() ? "" : ", ") + p;
  out += fmt::format("providers   {}\n", providers.empty() ? "none needed" : providers);
  for (const auto& [title, specs] : {std::pair{"inputs", &s.inputs()}, {"outputs", &s.outputs()}}) {
    const std::string lines = describe_inputs(*specs);
    out += fmt::format("{}\n{}{}", title, lines, lines.empty() ? "" : "\n");
  }
  std::vector<std::pair<std::string, std::int64_t>> ops(f.operators.begin(), f.operators.end());
  std::stable_sort(ops.begin(), ops.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  out +=
      fmt::format("operators ({}{})\n", counted(f.nodes, "node"), f.functions > 0 ? ", " + counted(f.functions, "function") : "");
  for (const auto& [op, n] : ops) out += fmt::format("  {:5d}  {}\n", n, one_line(op));
  if (!f.metadata.empty()) out += "metadata\n";
  for (const auto& [key, value] : f.metadata) out += fmt::format("  {}: {}\n", one_line(key), shortened(value));
  return out;
}

int InspectCommand::run() {
  const project::ResolvedModel model = resolve(session);
  const Session s = open(model);
  if (!stage.empty()) {
    const std::string text = s.dump(stage);
    print(json ? fmt::format("{{\"stage\":{},\"text\":{}}}\n", json_string(stage), json_string(text))
               : text + (text.ends_with('\n') ? "" : "\n"));
    return kOk;
  }
  const std::string file = model.model.string();
  const inspect::ModelFacts facts = inspect::model_facts(file, model.options);
  if (json) {
    print(facts_json(file, facts, s));
  } else {
    print_wrapped(facts_text(file, facts, s), 12);
  }
  return kOk;
}

}  // namespace

void add_inspect(const Command& app, Action& action) {
  const Command command = app.add_subcommand("inspect", "Show a model's inputs, outputs, operators, parameters and cost");
  const auto c = std::make_shared<InspectCommand>();
  c->session.add_to(command);
  command->add_flag("--json", c->json, "Print JSON");
  command->add_option("--stage", c->stage, "Print the graph at this stage: loaded, simplified, claimed or planned")
      ->one_of({"loaded", "simplified", "claimed", "planned"})
      ->type_name("STAGE");
  command->footer(kInspectExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
