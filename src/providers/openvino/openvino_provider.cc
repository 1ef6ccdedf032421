#include "providers/openvino/openvino_provider.h"

#include <algorithm>

#include "base/log.h"
#include "base/system/dynlib.h"
#include "providers/interface/refused_operators.h"
#include "providers/openvino/devices.h"
#include "providers/openvino/region_kernel.h"
#include "providers/ort/ort_provider.h"

namespace sdx::openvino {
namespace {

RefusedOperators& refused_operators() {
  static RefusedOperators all;
  return all;
}

class OpenVino : public Provider {
 public:
  std::string_view name() const override { return "openvino"; }
  bool compiles_regions() const override { return true; }

  ProviderInfo probe(const ProviderSettings& settings, Effort effort) const override {
    ProviderInfo info;
    info.name = name();
    info.ort_name = "OpenVINOExecutionProvider";
    info.hardware = "Intel CPU, GPU, NPU";
    if (!can_load_libraries()) {  // whatever else is missing, installing it would not help
      info.reason = why_no_libraries();
      return info;
    }
    if (const Provider* bridge = instead(settings)) {
      ProviderInfo other = bridge->probe(settings, effort);
      other.name = name();
      if (!other.available) {
        other.reason = "OpenVINO's own library is not found: " + own_problem(settings) +
                       "; nor can ONNX Runtime's provider be used: " + other.reason;
        other.hint = "`pip install openvino`, or set SDX_OPENVINO_LIB to libopenvino_c.so";
      }
      return other;
    }
    try {
      const Settings chosen = settings_of(settings);
      const MachineFacts& machine = this_machine();
      const auto library = Library::open(choose_library(settings));
      info.version = library->version();
      std::vector<Device> devices;
      // Asking the plugins takes 100 ms; without other hardware the answer is known.
      const bool only_cpu = machine.intel_gpus.empty() && machine.npus.empty() && !machine.render_nodes;
      if (effort == Effort::quick && only_cpu) {
        devices = {{"CPU", ""}};
      } else {
        devices = library->devices();
      }
      Diagnosis missing = missing_device(chosen.device, devices, machine, LoaderView::current());
      info.devices = describe(devices);
      info.accelerator = std::any_of(devices.begin(), devices.end(), [](const Device& d) { return !d.name.starts_with("CPU"); });
      info.reason = std::move(missing.reason);
      info.hint = std::move(missing.hint);
      info.available = info.reason.empty();
    } catch (const Error& e) {
      info.reason = e.message();
      info.hint = "`pip install openvino`, or set SDX_OPENVINO_LIB to libopenvino_c.so";
    }
    return info;
  }

  void check_options(const ProviderSettings& settings) const override {
    if (const Provider* bridge = instead(settings)) return bridge->check_options(settings);
    settings_of(settings);
  }

  std::vector<Claim> claim(const Graph& graph, const ProviderSettings& settings) const override;
  RegionResult compile(const Region& region, const ProviderSettings& settings) const override;

 private:
  static std::string own_problem(const ProviderSettings& settings) {
    try {
      Library::open(choose_library(settings));
    } catch (const Error& e) {
      return e.message();
    }
    return {};
  }

  // ONNX Runtime's provider if OpenVINO's library is not installed and no path was given; null if it is.
  static const Provider* instead(const ProviderSettings& settings) {
    return library_candidates(settings).empty() ? ort::find("ort:openvino") : nullptr;
  }
};

// Operators that its front end takes but that run incorrectly. Found by comparing each operator on random bytes with ONNX's
// definition, in 2025.4 and 2026.4.
std::string known_fault(const Node& node) {
  if (node.op_type.starts_with("QLinear") && node.op_type != "QLinearMatMul") {
    // QLinearAdd, -Mul and -LeakyRelu wrap around instead of saturating (up to 255 off); QLinearConv takes scales of single
    // channels along the wrong axis and is off by up to 38 without them; the others by one in half of the elements.
    return "OpenVINO computes " + node.op_type + " otherwise than ONNX defines it";
  }
  const auto flag = [&](const char* name) { return node.attributes.get_int(name, 0) != 0; };
  const auto text = [&](const char* name) { return std::string(node.attributes.get_string(name, "")); };
  if (node.op_type == "Resize") {
    if (flag("antialias")) return "OpenVINO's Resize ignores `antialias`";
    const std::string policy = text("keep_aspect_ratio_policy");
    if (!policy.empty() && policy != "stretch") return "OpenVINO's Resize ignores `keep_aspect_ratio_policy`";
  }
  if ((node.op_type == "LSTM" || node.op_type == "GRU" || node.op_type == "RNN") && flag("layout")) {
    return "OpenVINO's " + node.op_type + " ignores `layout`";
  }
  if (node.op_type.ends_with("Pool") && flag("ceil_mode"))
    return "OpenVINO's " + node.op_type + " counts the last window of `ceil_mode` otherwise";
  if (node.op_type == "DFT" && flag("inverse") && flag("onesided")) {
    return "OpenVINO's inverse of a one-sided DFT drops the last extent";
  }
  return {};
}

// Reasons to reject a node before the library is asked; empty: none.
std::string obstacle(const Library& library, const Graph& graph, const Node& node) {
  if (node.custom) return "the operator comes from a library of the session's custom operators, which `cpu` runs";
  const auto check = [&](ValueId v) -> std::string {
    if (v == kNoValue) return {};
    const ValueInfo& info = graph.value(v);
    if (info.type.kind != Type::Kind::tensor && info.type.known()) return "OpenVINO has tensors only, not " + info.type.str();
    if (!info.constant && info.type.known() && !info.type.shape) return "OpenVINO's plugins need the rank of '" + info.name + "'";
    if (info.constant || info.type.elem == DataType::undefined || library.element_type(info.type.elem) >= 0) return {};
    return "OpenVINO's C library cannot take values of type " + std::string(name(info.type.elem));
  };
  for (const ValueId v : node.inputs) {
    if (std::string why = check(v); !why.empty()) return why;
  }
  for (const ValueId v : node.outputs) {
    if (std::string why = check(v); !why.empty()) return why;
  }
  return known_fault(node);
}

std::vector<Claim> OpenVino::claim(const Graph& graph, const ProviderSettings& settings) const {
  if (const Provider* bridge = instead(settings)) return bridge->claim(graph, settings);
  std::vector<Claim> claims(graph.nodes().size());
  std::shared_ptr<const Library> library;
  try {
    library = Library::open(choose_library(settings));
  } catch (const Error& e) {
    for (Claim& c : claims) c.reason = e.message();
    return claims;
  }
  for (NodeId id = 0; id < claims.size(); ++id) {
    const Node& node = graph.node(id);
    claims[id].reason = obstacle(*library, graph, node);
    if (claims[id].reason.empty() && refused_operators().contains(library->version(), node)) {
      claims[id].reason = "OpenVINO " + library->version() + " does not have this operator";
    }
    claims[id].taken = claims[id].reason.empty();
  }
  return claims;
}

RegionResult OpenVino::compile(const Region& region, const ProviderSettings& settings) const {
  if (const Provider* bridge = instead(settings)) return bridge->compile(region, settings);
  const auto library = Library::open(choose_library(settings));
  RegionResult result;
  try {
    result.kernel = make_region_kernel(library, region, settings);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::not_implemented) throw;
    result.refused = blamed_nodes(*region.graph, e.message());
    if (result.refused.empty()) fail(ErrorCode::provider_unavailable, "OpenVINO {}: {}", library->version(), plain(e.message()));
    if (e.message().find("No conversion rule found") != std::string::npos) {
      for (const auto& [id, why] : result.refused) refused_operators().add(library->version(), region.graph->node(id));
    }
  }
  return result;
}

}  // namespace

const Provider* find(std::string_view name) {
  static const OpenVino instance;
  return name == "openvino" ? &instance : nullptr;
}

}  // namespace sdx::openvino
