#include "providers/ort/ort_provider.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/dynlib.h"
#include "providers/interface/diagnose.h"
#include "providers/interface/machine.h"
#include "providers/interface/refused_operators.h"
#include "providers/ort/options.h"
#include "providers/ort/plugins.h"
#include "providers/ort/region_kernel.h"
#include "providers/ort/trial.h"

namespace sdx::ort {
namespace {

RefusedOperators& refused_operators() {
  static RefusedOperators all;
  return all;
}

bool mentions(const Graph& graph, const std::string& op);
bool mentions(const Node& node, const std::string& op) {
  if (node.op_type == op) return true;
  return std::any_of(node.subgraphs.begin(), node.subgraphs.end(), [&](const Subgraph& s) { return mentions(*s.graph, op); });
}
bool mentions(const Graph& graph, const std::string& op) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& n) { return mentions(n, op); });
}

// The word behind `mark`, up to a character that no operator's name has.
std::string word_after(const std::string& text, const std::string& mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) return "";
  std::size_t end = at + mark.size();
  while (end < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_' || text[end] == '.' || text[end] == ':')) {
    ++end;
  }
  std::string word = text.substr(at + mark.size(), end - at - mark.size());
  if (const std::size_t colon = word.rfind(':'); colon != std::string::npos) word = word.substr(colon + 1);
  return word;
}

const ProviderName& name_of(std::string_view provider) {
  const auto names = provider_names();
  return *std::find_if(names.begin(), names.end(), [&](const ProviderName& p) { return p.name == provider; });
}

// True when something stands in the way.
bool report(Diagnosis found, ProviderInfo& info) {
  if (found.reason.empty()) return false;
  info.reason = std::move(found.reason);
  info.hint = std::move(found.hint);
  return true;
}

class OrtProvider : public Provider {
 public:
  OrtProvider(std::string name, std::string provider) : name_(std::move(name)), provider_(std::move(provider)) {}

  std::string_view name() const override { return name_; }
  bool compiles_regions() const override { return true; }
  std::string_view family() const override { return "ort"; }

  ProviderInfo probe(const ProviderSettings& settings, Effort effort) const override {
    ProviderInfo info;
    info.name = name_;
    info.ort_name = std::string(vendor_name(provider_));
    const ProviderName& named = name_of(provider_);
    info.hardware = named.hardware;
    if (!can_load_libraries()) {  // whatever else is missing, installing it would not help
      info.reason = why_no_libraries();
      return info;
    }
    const MachineFacts& machine = this_machine();
    RuntimeFacts facts;
    std::shared_ptr<const Library> library;
    try {
      const std::filesystem::path file = choose_library(settings, provider_);
      facts.library = file.string();
      add_provider_library(file, facts);
      facts.built_in = {info.ort_name};  // until it is loaded, which costs more than a look at the hardware
      if (effort == Effort::quick) {
        if (report(diagnose(named, machine, facts, LoaderView::current(), true), info)) return info;
      }
      library = Library::open(file);
      facts.version = info.version = library->version();
      facts.built_in = library->providers();
    } catch (const Error& e) {
      facts.library_problem = e.message();
    }
    try {
      const Diagnosis problem = library ? add_plugins(*library, facts, info) : Diagnosis();
      Diagnosis found = diagnose(named, machine, facts, LoaderView::current(), effort == Effort::quick);
      if (!problem.reason.empty()) found.reason += (found.reason.empty() ? "" : "; ") + problem.reason;  // hardware comes first
      if (found.hint.empty()) found.hint = problem.hint;
      if (report(std::move(found), info)) return info;
      if (provider_ != "cpu" && report(try_provider(*library, provider_, settings), info)) return info;
    } catch (const Error& e) {
      info.reason = e.message();
      return info;
    }
    info.available = true;
    info.accelerator = info.accelerator || (provider_ == "openvino" && info.devices.size() > 1) || provider_ == "cuda" ||
                       provider_ == "tensorrt" || provider_ == "rocm" || provider_ == "migraphx" || provider_ == "coreml" ||
                       provider_ == "directml";
    if (info.devices.empty()) info.devices = devices_of(machine, *library);
    return info;
  }

  void check_options(const ProviderSettings& settings) const override { ort::check_options(provider_, settings); }

  std::vector<Claim> claim(const Graph& graph, const ProviderSettings& settings) const override {
    std::vector<Claim> claims(graph.nodes().size());
    std::shared_ptr<const Library> library;
    try {
      library = Library::open(choose_library(settings, provider_));
    } catch (const Error& e) {
      for (Claim& c : claims) c.reason = e.message();
      return claims;
    }
    for (NodeId id = 0; id < claims.size(); ++id) {
      if (graph.node(id).custom) {
        claims[id].reason = "the operator comes from a library of the session's custom operators, which `cpu` runs";
        continue;
      }
      claims[id].taken = !refused_operators().contains(library->version(), graph.node(id));
      if (!claims[id].taken) claims[id].reason = "ONNX Runtime " + library->version() + " does not have this operator";
    }
    return claims;
  }

  RegionResult compile(const Region& region, const ProviderSettings& settings) const override {
    const auto library = Library::open(choose_library(settings, provider_));
    RegionResult result;
    try {
      result.kernel = make_region_kernel(library, name_, provider_, region, settings);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::not_implemented) throw;
      result.refused = blamed_nodes(*region.graph, e.message());
      if (result.refused.empty()) fail(ErrorCode::provider_unavailable, "{}", e.message());
      if (e.message().find("not a registered function/op") != std::string::npos ||
          e.message().find("No Op registered") != std::string::npos) {
        for (const auto& [id, why] : result.refused) refused_operators().add(library->version(), region.graph->node(id));
      }
    }
    return result;
  }

 private:
  // Devices are named by their kind, by which automatic selection distinguishes accelerators from CPUs.
  std::vector<std::string> devices_of(const MachineFacts& machine, const Library& library) const {
    const std::string through = fmt::format("through ONNX Runtime {} ({})", library.version(), library.path().string());
    const bool on_cpu = provider_ == "cpu" || provider_ == "dnnl" || provider_ == "xnnpack" || provider_ == "openvino";
    std::vector<std::string> out{on_cpu ? "CPU, " + through : through};
    if (provider_ != "openvino") return out;
    for (const std::string& gpu : machine.intel_gpus) out.push_back("GPU: " + gpu + ", " + through);
    for (const std::string& npu : machine.npus) out.push_back("NPU: " + npu + ", " + through);
    return out;
  }

  // What the CPU is to a provider that is made for other hardware.
  const char* stand_in() const {
    return provider_ == "webgpu" ? " (a software driver)" : provider_ == "qnn" ? " (a simulator of the NPU)" : "";
  }

  // A plugin counts as built in: it needs no other library. Returns why there is one that cannot be used.
  Diagnosis add_plugins(const Library& library, RuntimeFacts& facts, ProviderInfo& info) const {
    const auto& built_in = library.providers();
    if (std::find(built_in.begin(), built_in.end(), info.ort_name) != built_in.end()) return {};
    std::vector<std::string> problems;
    for (const PluginDevice& d : plugin_devices(library, provider_, problems)) {
      info.devices.push_back(fmt::format("{}{}{}{}, by a plugin of ONNX Runtime {}", d.kind, d.vendor.empty() ? "" : ": ",
                                         d.vendor, d.kind == "CPU" ? stand_in() : "", library.version()));
      info.accelerator = info.accelerator || d.kind != "CPU";
    }
    if (info.devices.empty() && !has_plugin(provider_)) return {};
    facts.built_in.push_back(info.ort_name);
    if (!info.devices.empty()) return {};
    if (library.f().register_plugin == nullptr) {
      problems.push_back("ONNX Runtime " + library.version() + " does not load plugins; 1.22 or newer does");
    }
    if (!problems.empty()) return {join(problems, "; "), ""};
    return {"its plugin finds no supported device on this machine",
            provider_ == "webgpu"
                ? "use a machine with a GPU; for tests, ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER=1 admits a software "
                  "driver of Vulkan"
                : ""};
  }

  void add_provider_library(const std::filesystem::path& runtime, RuntimeFacts& facts) const {
    facts.provider_library_name = provider_library_name(provider_);
    if (facts.provider_library_name.empty()) return;
    const std::filesystem::path file = runtime.parent_path() / facts.provider_library_name;
    std::error_code none;
    if (std::filesystem::exists(file, none)) {
      facts.provider_library = file.string();
    } else if (has_plugin(provider_)) {
      facts.provider_library_name.clear();  // comes by the plugin
    }
  }

  std::string name_, provider_;
};

}  // namespace

std::vector<std::pair<NodeId, std::string>> blamed_nodes(const Graph& graph, const std::string& message) {
  std::vector<std::pair<NodeId, std::string>> out;
  // Forms of the message in its versions: "Fatal error: com.foo:Bar(-1) is not a registered function/op", "No Op registered for
  // Bar with domain_version of 13", "Could not find an implementation for Bar(13) node with name 'x'", "… of operator (Bar) in
  // node (x) is invalid", "Node (x) Op (Bar) [ShapeInferenceError] …", "In Node, ("x", Bar, "", -1)".
  for (const char* mark : {"Fatal error: ", "No Op registered for ", "find an implementation for ", "find kernel for ",
                           "of operator (", ") Op (", "(op_type:"}) {
    const std::string op = word_after(message, mark);
    if (op.empty()) continue;
    for (NodeId id = 0; id < graph.nodes().size(); ++id) {
      if (mentions(graph.node(id), op)) out.emplace_back(id, message);
    }
    if (!out.empty()) return out;
  }
  const std::string mark = "In Node, (\"";
  if (const std::size_t at = message.find(mark); at != std::string::npos) {
    const std::size_t comma = message.find("\", ", at + mark.size());
    if (comma == std::string::npos) return out;
    const std::string op = word_after(message.substr(comma), "\", ");
    for (NodeId id = 0; id < graph.nodes().size(); ++id) {
      if (!op.empty() && mentions(graph.node(id), op)) out.emplace_back(id, message);
    }
  }
  return out;
}

const Provider* find(std::string_view name) {
  static const auto* const table = [] {
    auto* made = new std::map<std::string, std::unique_ptr<OrtProvider>, std::less<>>;
    for (const ProviderName& p : provider_names()) {
      made->emplace(p.name, std::make_unique<OrtProvider>(p.name, p.name));
      made->emplace("ort:" + p.name, std::make_unique<OrtProvider>("ort:" + p.name, p.name));
    }
    return made;
  }();
  const auto it = table->find(name);
  return it == table->end() ? nullptr : it->second.get();
}

}  // namespace sdx::ort
