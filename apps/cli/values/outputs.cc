#include "cli/values/outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/printable.h"
#include "base/text/json_text.h"
#include "base/text/text_file.h"
#include "cli/command.h"
#include "tensor/json.h"
#include "tensor/npy.h"
#include "tensor/npz.h"
#include "tensor/print.h"

namespace sdx::cli {
namespace {

constexpr std::int64_t kShown = 12;

std::string ending_of(const std::string& path) {
  const auto dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(dot);
}

std::string value_text(const Value& v) {
  if (v.is_tensor()) return print_elements(v.tensor(), kShown);
  if (v.is_map()) {
    const Map& m = v.map();
    std::string out = "{";
    for (std::int64_t i = 0; i < m.keys.size() && i < kShown; ++i) {
      out += fmt::format("{}{}: {}", i != 0 ? ", " : "", print_element(m.keys, i), print_element(m.values, i));
    }
    return out + (m.keys.size() > kShown ? fmt::format(", … {} in all}}", m.keys.size()) : "}");
  }
  if (!v.is_sequence()) return "none";
  std::string out = "[";
  const auto& items = v.sequence().items;
  for (std::size_t i = 0; i < items.size() && i < 4; ++i) out += (i != 0 ? ", " : "") + value_text(items[i]);
  return out + (items.size() > 4 ? fmt::format(", … {} in all]", items.size()) : "]");
}

}  // namespace

std::vector<std::string> read_labels(const std::string& path) {
  const std::string text = to_utf8(read_file(path));
  if (text.find('\0') != std::string::npos)
    fail(ErrorCode::invalid_argument, "'{}' is not text; expected one label a line", path);
  std::vector<std::string> labels;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    labels.push_back(std::move(line));
    at = end + 1;
  }
  if (labels.empty()) fail(ErrorCode::invalid_argument, "'{}' is empty; expected one label a line", path);
  return labels;
}

std::string report_json(const Report& r, double run_ms) {
  std::string out = fmt::format(
      "{{\"model\":{},\"runtime\":{},\"providers\":{},\"fallbacks\":{},\"warnings\":{},\"load_ms\":{:.3f},\"init_ms\":{:.3f},"
      "\"peak_bytes\":{}",
      json_string(r.model), json_string(r.runtime), json_list(r.providers), json_list(r.fallbacks), json_list(r.warnings),
      r.load_ms, r.init_ms, r.peak_bytes);
  if (!r.compiled.empty()) out += fmt::format(",\"compiled\":{}", json_string(r.compiled));
  out += fmt::format(",\"why\":{},\"events\":{},\"chains\":[", json_string(r.why), json_list(r.events));
  for (std::size_t i = 0; i < r.chains.size(); ++i) {
    const ChainReport& c = r.chains[i];
    out += fmt::format("{}{{\"providers\":{},\"state\":{},\"runs\":{},\"failures\":{}}}", i == 0 ? "" : ",",
                       json_list(c.providers), json_string(c.state), c.runs, c.failures);
  }
  out += "],\"measured\":[";
  for (std::size_t i = 0; i < r.measured.size(); ++i) {
    const MeasuredProvider& m = r.measured[i];
    out += fmt::format("{}{{\"provider\":{},\"median_ms\":{:.4f},\"compile_ms\":{:.3f},\"chosen\":{},\"note\":{}}}",
                       i == 0 ? "" : ",", json_string(m.provider), m.median_ms, m.compile_ms, m.chosen, json_string(m.note));
  }
  out += "]";
  if (run_ms >= 0) out += fmt::format(",\"run_ms\":{:.3f}", run_ms);
  return out + "}";
}

namespace {

// A model may list one output twice: the same value, which a file holds once.
std::vector<const NamedValue*> by_name(const NamedValues& outputs) {
  std::vector<const NamedValue*> distinct;
  std::set<std::string_view> seen;
  for (const NamedValue& item : outputs) {
    if (seen.insert(item.name).second) distinct.push_back(&item);
  }
  return distinct;
}

}  // namespace

std::string outputs_json(const NamedValues& outputs, const Report& report, double run_ms, const std::string& extra) {
  std::string out = "{\"outputs\":{";
  bool first = true;
  for (const NamedValue* item : by_name(outputs)) {
    if (!first) out += ',';
    first = false;
    append_json_string(out, item->name);
    out += ':';
    append_json(out, item->value);
  }
  return out + "}" + extra + ",\"report\":" + report_json(report, run_ms) + "}\n";
}

std::string outputs_text(const NamedValues& outputs) {
  std::string out;
  for (const NamedValue& item : outputs)
    out += fmt::format("{}: {} = {}\n", one_line(item.name), item.value.type_string(), value_text(item.value));
  return out;
}

void check_output_name(const std::string& path) {
  const std::string ending = ending_of(path);
  if (path == "-" || ending == ".json" || ending == ".npz" || ending == ".npy") return;
  throw UsageError(fmt::format("-o {}: the name must end in .json, .npz or .npy", path));
}

void write_outputs(const std::string& path, const NamedValues& outputs, const Report& report, double run_ms,
                   const std::string& extra) {
  const std::string ending = ending_of(path);
  if (path == "-") return print(outputs_json(outputs, report, run_ms, extra));
  if (ending == ".json") return write_file_atomically(path, outputs_json(outputs, report, run_ms, extra));
  NamedTensors tensors;
  for (const NamedValue* item : by_name(outputs)) {
    if (!item->value.is_tensor()) {
      fail(ErrorCode::invalid_argument, "output '{}' is {}: {} files hold tensors only, write .json instead", item->name,
           item->value.type_string(), ending);
    }
    tensors.emplace_back(item->name, item->value.tensor());
  }
  if (ending == ".npz") return write_npz(path, tensors);
  if (tensors.size() != 1) {
    fail(ErrorCode::invalid_argument,
         "the model has {} outputs, but a .npy file holds only one: write .npz, or choose one with --output-name",
         tensors.size());
  }
  write_npy(path, tensors.front().second);
}

}  // namespace sdx::cli
