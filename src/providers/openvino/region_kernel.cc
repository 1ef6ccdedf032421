#include "providers/openvino/region_kernel.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <mutex>
#include <shared_mutex>

#include "base/cancel.h"
#include "base/log.h"
#include "base/system/file.h"
#include "providers/vendor/model_cache.h"
#include "providers/vendor/region_bytes.h"

namespace sdx::openvino {
namespace {

// The longest time that a run continues after its deadline or cancellation, apart from the time that the library needs to notice.
constexpr std::int64_t kLookEveryMs = 2;
// Requests that wait for the next run. More runs than these at a time make their own and drop them.
constexpr std::size_t kMostIdle = 16;

using ModelHandle = std::unique_ptr<c::Model, void (*)(c::Model*)>;
using CompiledHandle = std::unique_ptr<c::Compiled, void (*)(c::Compiled*)>;
using RequestHandle = std::unique_ptr<c::Request, void (*)(c::Request*)>;
using TensorHandle = std::unique_ptr<c::Tensor, void (*)(c::Tensor*)>;
using PortHandle = std::unique_ptr<c::Port, void (*)(c::Port*)>;

struct Output {
  PortHandle port;
  DataType type = DataType::undefined;
};

// A lock that deadline and cancellation end the wait for.
template <template <class> class Lock, class Mutex>
Lock<Mutex> locked(Mutex& mutex, const StopCondition& stop) {
  Lock<Mutex> lock(mutex, std::defer_lock);
  while (!lock.try_lock_for(std::chrono::milliseconds(kLookEveryMs))) stop.check();
  return lock;
}

// Views the tensor's memory.
TensorHandle wrap(const Library& library, const Tensor& t) {
  static std::int64_t nothing = 0;  // an empty tensor's address must not be null
  const c::Shape shape{static_cast<std::int64_t>(t.rank()), const_cast<std::int64_t*>(t.shape().data())};
  c::Tensor* made = nullptr;
  library.check(library.f().tensor_create_from_host_ptr(library.element_type(t.dtype()), shape,
                                                        t.bytes() == 0 ? &nothing : const_cast<void*>(t.data()), &made),
                ErrorCode::runtime_failure);
  return {made, library.f().tensor_free};
}

Tensor copy_out(const Library& library, const c::Request* request, const Output& output) {
  const Functions& f = library.f();
  c::Tensor* raw = nullptr;
  library.check(f.infer_request_get_tensor_by_const_port(request, output.port.get(), &raw), ErrorCode::runtime_failure);
  const TensorHandle handle(raw, f.tensor_free);
  c::Shape extents{};
  Shape shape;
  // It has no form for the shape of a scalar; the number of bytes is compared below.
  if (f.tensor_get_shape(raw, &extents) == kOk) {
    shape.assign(extents.extents, extents.extents + extents.rank);
    f.shape_free(&extents);
  }
  Tensor t(output.type, std::move(shape));
  std::size_t bytes = 0;
  library.check(f.tensor_get_byte_size(raw, &bytes), ErrorCode::runtime_failure);
  if (bytes != t.bytes()) {
    fail(ErrorCode::runtime_failure, "OpenVINO returned {} bytes for {}, which takes {}", bytes, t.type_string(), t.bytes());
  }
  void* data = nullptr;
  if (bytes != 0) {
    library.check(f.tensor_data(raw, &data), ErrorCode::runtime_failure);
    std::memcpy(t.mutable_data(), data, bytes);
  }
  return t;
}

class RegionKernel : public Kernel {
 public:
  RegionKernel(std::shared_ptr<const Library> library, CompiledHandle compiled, const Graph& graph,
               std::shared_ptr<cache::CacheEntry> cache)
      : library_(std::move(library)),
        cache_(std::move(cache)),
        compiled_(std::move(compiled)),
        name_("openvino " + library_->version()) {
    find_inputs(graph);
    find_outputs(graph);
    idle_.push_back(make_request());  // what cannot be made should fail while there is a next provider
  }

  std::string_view name() const override { return name_; }
  bool allocates_outputs() const override { return true; }

  void run(const KernelContext& context) const override {
    const Functions& f = library_->f();
    const StopCondition& stop = context.services->stop();
    RequestHandle request = take_request(stop);
    std::vector<TensorHandle> held;
    held.reserve(inputs_.size());
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i]) continue;
      held.push_back(wrap(*library_, context.inputs[i]->tensor()));
      library_->check(f.infer_request_set_tensor_by_const_port(request.get(), inputs_[i].get(), held.back().get()),
                      ErrorCode::runtime_failure);
    }
    infer(request.get(), stop);
    // Copied: the request's own tensors are overwritten by its next run, and memory of ours that is set for them stays unwritten
    // for results that are inputs handed on, or that the plugin computes in another type (float64), as 2026.4 does it.
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (context.outputs[i] != nullptr) *context.outputs[i] = copy_out(*library_, request.get(), outputs_[i]);
    }
    // A request that failed is not used again.
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMostIdle) idle_.push_back(std::move(request));
  }

 private:
  void find_inputs(const Graph& graph);
  void find_outputs(const Graph& graph);

  RequestHandle make_request() const {
    c::Request* made = nullptr;
    library_->check(library_->f().compiled_model_create_infer_request(compiled_.get(), &made), ErrorCode::provider_unavailable);
    return {made, library_->f().infer_request_free};
  }

  RequestHandle take_request(const StopCondition& stop) const {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        RequestHandle r = std::move(idle_.back());
        idle_.pop_back();
        return r;
      }
    }
    // 2026.4's CPU plugin reads the graph when it makes a request, without a lock: while another request changes the graph's
    // shapes that ends the process. So it waits for the runs under way, and `turn_` keeps new ones from going before it.
    const auto turn = locked<std::unique_lock>(turn_, stop);
    const auto alone = locked<std::unique_lock>(running_, stop);
    return make_request();
  }

  void infer(c::Request* request, const StopCondition& stop) const {
    const Functions& f = library_->f();
    auto turn = locked<std::unique_lock>(turn_, stop);
    const auto running = locked<std::shared_lock>(running_, stop);
    turn.unlock();
    if (!stop.cancelled && !stop.deadline) {
      library_->check(f.infer_request_infer(request), ErrorCode::runtime_failure);
      return;
    }
    library_->check(f.infer_request_start_async(request), ErrorCode::runtime_failure);
    int status = kNotReady;
    while ((status = f.infer_request_wait_for(request, kLookEveryMs)) == kNotReady) {
      try {
        stop.check();
      } catch (...) {
        f.infer_request_cancel(request);
        f.infer_request_wait(request);  // the tensors must outlive it
        throw;
      }
    }
    library_->check(status, ErrorCode::runtime_failure);
  }

  std::shared_ptr<const Library> library_;
  std::shared_ptr<cache::CacheEntry> cache_;
  CompiledHandle compiled_;
  std::string name_;
  std::vector<PortHandle> inputs_;  // null: the library found that the model does not need it
  std::vector<Output> outputs_;
  mutable std::timed_mutex turn_;
  mutable std::shared_timed_mutex running_;  // shared by runs
  mutable std::mutex mutex_;                 // guards idle_
  mutable std::vector<RequestHandle> idle_;
};

// A value that is input and output at once has lost its name as an input; the order is then the model's.
void RegionKernel::find_inputs(const Graph& graph) {
  const Functions& f = library_->f();
  std::size_t count = 0;
  library_->check(f.compiled_model_inputs_size(compiled_.get(), &count), ErrorCode::not_implemented);
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    c::Port* port = nullptr;
    if (f.compiled_model_input_by_name(compiled_.get(), graph.value(graph.inputs()[i]).name.c_str(), &port) != kOk) {
      port = nullptr;
      if (count == graph.inputs().size() && f.compiled_model_input_by_index(compiled_.get(), i, &port) != kOk) port = nullptr;
    }
    inputs_.emplace_back(port, f.output_const_port_free);
  }
  const auto found = std::count_if(inputs_.begin(), inputs_.end(), [](const PortHandle& p) { return p != nullptr; });
  if (static_cast<std::size_t>(found) < count) {
    fail(ErrorCode::not_implemented, "OpenVINO {} names the model's inputs otherwise", library_->version());
  }
}

void RegionKernel::find_outputs(const Graph& graph) {
  const Functions& f = library_->f();
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const std::string& name = graph.output_names()[i];
    c::Port* raw = nullptr;
    std::size_t count = 0;
    if (f.compiled_model_output_by_name(compiled_.get(), name.c_str(), &raw) != kOk) {
      library_->check(f.compiled_model_outputs_size(compiled_.get(), &count), ErrorCode::not_implemented);
      if (count != graph.outputs().size()) {
        fail(ErrorCode::not_implemented, "OpenVINO {} lost the output '{}' of the model", library_->version(), name);
      }
      library_->check(f.compiled_model_output_by_index(compiled_.get(), i, &raw), ErrorCode::not_implemented);
    }
    Output output{PortHandle(raw, f.output_const_port_free), DataType::undefined};
    int type = 0;
    library_->check(f.port_get_element_type(raw, &type), ErrorCode::not_implemented);
    output.type = library_->data_type(type);
    const DataType expected = graph.value(graph.outputs()[i]).type.elem;
    if (output.type == DataType::undefined || (expected != DataType::undefined && expected != output.type)) {
      fail(ErrorCode::not_implemented, "OpenVINO {} returns output '{}' with another element type than {}", library_->version(),
           name, sdx::name(expected));
    }
    outputs_.push_back(std::move(output));
  }
}

// The file itself where it will do: the library maps its weights, and finds what lies beside it.
ModelHandle read_region(const Library& library, const Region& region) {
  const Functions& f = library.f();
  c::Model* made = nullptr;
  if (region.source != nullptr && !region.source->path.empty()) {
    if (f.core_read_model(library.core(), text_of(region.source->path).c_str(), nullptr, &made) == kOk)
      return {made, f.model_free};
    // A file must have the extension .onnx to be recognised, whatever it contains.
    if (region.source->path.extension() == ".onnx") fail(ErrorCode::not_implemented, "{}", library.message(-1));
  }
  if (f.core_read_model_from_memory_buffer == nullptr) {
    fail(ErrorCode::provider_unavailable, "OpenVINO {} cannot read models from memory; 2023.1 or newer is needed",
         library.version());
  }
  const std::string bytes = region_bytes(region);
  library.check(f.core_read_model_from_memory_buffer(library.core(), bytes.data(), bytes.size(), nullptr, &made),
                ErrorCode::not_implemented);
  return {made, f.model_free};
}

int compile_with(const Library& library, const c::Model* model, const Settings& settings, c::Compiled** out) {
  std::array<const char*, 2 * c::kMostProperties> a{};
  for (std::size_t i = 0; i < settings.properties.size(); ++i) {
    a[2 * i] = settings.properties[i].first.c_str();
    a[2 * i + 1] = settings.properties[i].second.c_str();
  }
  // All properties are passed; the callee reads as many as it is told.
  return library.f().core_compile_model(library.core(), model, settings.device.c_str(), 2 * settings.properties.size(), out, a[0],
                                        a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14],
                                        a[15], a[16], a[17], a[18], a[19], a[20], a[21], a[22], a[23], a[24], a[25], a[26], a[27],
                                        a[28], a[29], a[30], a[31]);
}

CompiledHandle compile_region(const Library& library, const c::Model* model, Settings settings) {
  c::Compiled* made = nullptr;
  int status = compile_with(library, model, settings, &made);
  // A property of ours that this version does not have; the user's own must hold.
  constexpr const char* kInternal = "LP_TRANSFORMS_MODE";
  if (status != kOk && library.message(status).find(kInternal) != std::string::npos) {
    std::erase_if(settings.properties, [&](const auto& p) { return p.first == kInternal && p.second == "NO"; });
    status = compile_with(library, model, settings, &made);
  }
  if (status != kOk) {
    const std::string message = library.message(status);
    const bool property = message.find("nsupported property") != std::string::npos ||
                          message.find("for property") != std::string::npos || message.find("property key") != std::string::npos;
    fail(property ? ErrorCode::invalid_argument : ErrorCode::not_implemented, "OpenVINO {}: {}", library.version(), message);
  }
  return {made, library.f().compiled_model_free};
}

bool mentions(const Graph& graph, const std::string& op, const std::string& value);
bool mentions(const Graph& graph, const Node& node, const std::string& op, const std::string& value) {
  const std::string full = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
  if (!op.empty() && (full == op || node.op_type == op)) return true;
  if (!value.empty()) {
    if (node.name == value) return true;
    for (const ValueId v : node.outputs) {
      if (v != kNoValue && graph.value(v).name == value) return true;
    }
  }
  return std::any_of(node.subgraphs.begin(), node.subgraphs.end(),
                     [&](const Subgraph& s) { return mentions(*s.graph, op, value); });
}
bool mentions(const Graph& graph, const std::string& op, const std::string& value) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& n) { return mentions(graph, n, op, value); });
}

// All texts between `before` and the first of the characters `ends`.
std::vector<std::string> between(const std::string& text, const std::string& before, const char* ends) {
  std::vector<std::string> out;
  for (std::size_t at = 0; (at = text.find(before, at)) != std::string::npos;) {
    at += before.size();
    const std::size_t end = std::min(text.find_first_of(ends, at), text.size());
    out.push_back(text.substr(at, end - at));
  }
  return out;
}

// "Conv-15" -> "Conv".
std::string without_version(const std::string& op) {
  const std::size_t dash = op.rfind('-');
  const bool versioned =
      dash != std::string::npos && dash + 1 < op.size() && op.find_first_not_of("0123456789", dash + 1) == std::string::npos;
  return versioned ? op.substr(0, dash) : op;
}

}  // namespace

std::string plain(const std::string& message) {
  std::string out;
  for (std::string line : between("\n" + message, "\n", "\n")) {
    // "Check 'cond' failed at src/a/b.cpp:12:", with or without something before or behind it.
    if (const std::size_t check = line.find("Check '"); check != std::string::npos) {
      const std::size_t place = line.find("' failed at ", check);
      const std::size_t colon = place == std::string::npos ? place : line.find(':', line.find(".cpp", place));
      const std::size_t end = colon == std::string::npos ? colon : line.find(':', colon + 1);
      line.erase(check, end == std::string::npos ? end : end + 1 - check);
    }
    for (const char* empty : {"Exception from ", "FrontEnd API failed", "Model wasn't fully converted",
                              "Summary:", "Unexpected: ", "General Exception", "Loading input model"}) {
      if (!line.starts_with(empty)) continue;
      line = std::string_view(empty) == "Unexpected: " ? line.substr(12) : "";
    }
    while (!line.empty() && (line.back() == ' ' || line.back() == ':')) line.pop_back();
    if (!line.empty()) out += (out.empty() ? "" : "; ") + line;
  }
  return out.empty() ? message : out;
}

std::vector<std::pair<NodeId, std::string>> blamed_nodes(const Graph& graph, const std::string& whole) {
  std::vector<std::pair<NodeId, std::string>> out;
  std::string message = whole;  // of which one part after the other is looked at
  const auto blame = [&](const std::string& op, const std::string& value) {
    for (NodeId id = 0; id < graph.nodes().size(); ++id) {
      const bool known = std::any_of(out.begin(), out.end(), [&](const auto& b) { return b.first == id; });
      if (!known && mentions(graph, graph.node(id), op, value)) out.emplace_back(id, plain(message));
    }
  };
  // "While validating ONNX node '<Node(Conv): conv_output>'": one node, by its name or its first output.
  // Its part of the message ends where the next operator's begins.
  for (std::size_t at = 0; at < whole.size();) {
    const std::size_t end = std::min({whole.find("\n-- ", at + 1), whole.find("\nSummary:", at + 1), whole.size()});
    message = whole.substr(at, end - at);
    for (const std::string& node : between(message, "<Node(", ">")) {
      const std::size_t colon = node.find("): ");
      if (colon != std::string::npos) blame("", node.substr(colon + 3));
    }
    at = end;
  }
  message = whole;
  for (const std::string& value : between(message, "Unsupported value_info type: ", " \n")) blame("", value);
  for (const std::string& node : between(message, "Operation name: ", " \n")) blame("", node);
  // Where it inlined a branch the names are its own: all nodes of the operator then. "Conversion is failed for: Conv-15, Foo-1",
  // "No conversion rule found for operations: ai.onnx.ml.TreeEnsembleRegressor", "does not support the following ONNX operations:
  // …".
  if (out.empty()) {
    for (const char* mark :
         {"Conversion is failed for: ", "No conversion rule found for operations: ", "following ONNX operations: "}) {
      for (const std::string& list : between(message, mark, "\n")) {
        for (const std::string& op : between(", " + list, ", ", ",")) blame(without_version(op), "");
      }
    }
  }
  return out;
}

std::unique_ptr<Kernel> make_region_kernel(std::shared_ptr<const Library> library, const Region& region,
                                           const ProviderSettings& settings) {
  std::shared_ptr<cache::CacheEntry> cache = open_cache(region, settings, "openvino " + library->version());
  ProviderSettings own = settings;
  own.cache = cache ? cache->folder() : std::filesystem::path();
  const ModelHandle model = read_region(*library, region);
  CompiledHandle compiled(nullptr, library->f().compiled_model_free);
  try {
    compiled = compile_region(*library, model.get(), settings_of(own));
  } catch (const Error& e) {
    if (!cache || !cache->warm()) throw;
    log::info("openvino: the cached model cannot be used and is compiled again: {}", plain(e.message()));
    cache->discard();
    compiled = compile_region(*library, model.get(), settings_of(own));
  }
  if (cache) cache->seal();
  return std::make_unique<RegionKernel>(std::move(library), std::move(compiled), *region.graph, std::move(cache));
}

}  // namespace sdx::openvino
