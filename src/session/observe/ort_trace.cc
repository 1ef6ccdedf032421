#include "session/observe/ort_trace.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/system/mapped_file.h"
#include "base/system/process.h"
#include "base/text/json_text.h"
#include "providers/interface/provider.h"

namespace sdx::session {
namespace {

using Json = nlohmann::ordered_json;

// "ort:cuda" runs where "cuda" does.
std::string ort_name(std::string_view provider) {
  if (provider.starts_with("ort:")) provider.remove_prefix(4);
  for (const ProviderName& p : provider_names()) {
    if (p.name == provider) return p.ort_name;
  }
  return std::string(provider);
}

std::int64_t microseconds(std::int64_t ns) { return (ns + 500) / 1000; }

// ONNX Runtime's names of element types: those of C++ if it has one.
std::string_view ort_type(DataType type) {
  switch (type) {
    case DataType::float32: return "float";
    case DataType::float64: return "double";
    case DataType::boolean: return "bool";
    default: return name(type);
  }
}

// Tensors alone: ONNX Runtime lists no others either.
Json type_shapes(const std::vector<ProfileEvent::TensorFacts>& values) {
  Json out = Json::array();
  for (const ProfileEvent::TensorFacts& t : values) {
    if (t.dtype != DataType::undefined) out.push_back({{std::string(ort_type(t.dtype)), t.shape}});
  }
  return out;
}

// Numbers are text, as there.
std::string bytes_of(const std::vector<ProfileEvent::TensorFacts>& values, bool constants) {
  std::uint64_t bytes = 0;
  for (const ProfileEvent::TensorFacts& t : values) bytes += t.is_constant == constants ? t.bytes : 0;
  return std::to_string(bytes);
}

class Writer {
 public:
  void session(std::string_view name, int thread, std::int64_t start, std::int64_t duration) {
    add("Session", std::string(name), thread, start, duration, Json::object());
  }

  void node(const ProfileEvent& e) {
    const std::string& name = e.name.empty() ? e.op : e.name;
    const auto index = nodes_.try_emplace(name, nodes_.size()).first->second;
    add("Node", name + "_kernel_time", thread(e), microseconds(e.start_ns), microseconds(e.duration_ns),
        {{"op_name", e.op},
         {"node_index", std::to_string(index)},
         {"provider", ort_name(e.provider)},
         {"thread_scheduling_stats", ""},
         {"input_type_shape", type_shapes(e.inputs)},
         {"output_type_shape", type_shapes(e.outputs)},
         {"parameter_size", bytes_of(e.inputs, true)},
         {"activation_size", bytes_of(e.inputs, false)},
         {"output_size", bytes_of(e.outputs, false)},
         {"kernel", e.kernel},
         {"run", e.run}});
  }

  // Threads get small numbers, in the order in which they occur.
  int thread(const ProfileEvent& e) {
    return threads_.try_emplace(e.thread, static_cast<int>(threads_.size()) + 1).first->second;
  }

  std::string take() { return "[\n" + text_ + "\n]\n"; }

 private:
  // An event a line, as text at once: there may be a million. Names may be any bytes.
  void add(const char* category, std::string name, int thread, std::int64_t start, std::int64_t duration, Json args) {
    const Json event{{"cat", category}, {"pid", pid_}, {"tid", thread},           {"dur", duration},
                     {"ts", start},     {"ph", "X"},   {"name", std::move(name)}, {"args", std::move(args)}};
    if (!text_.empty()) text_ += ",\n";
    text_ += dump_json(event);
  }

  const std::uint64_t pid_ = process_id();
  std::map<std::uint64_t, int> threads_;
  std::map<std::string, std::size_t> nodes_;
  std::string text_;
};

}  // namespace

Opening opening_of(const Session& session) {
  const Report report = session.report();
  return {!report.model.empty(), report.load_ms, report.init_ms};
}

void write_ort_trace(const std::filesystem::path& path, const std::vector<ProfileEvent>& events,
                     const std::optional<Opening>& opening) {
  Writer out;
  if (opening) {
    const auto load = static_cast<std::int64_t>(opening->load_ms * 1000),
               init = static_cast<std::int64_t>(opening->init_ms * 1000);
    out.session(opening->from_file ? "model_loading_uri" : "model_loading_array", 1, 0, load);
    out.session("session_initialization", 1, load, init);
  }
  std::map<std::uint64_t, std::vector<const ProfileEvent*>> runs;
  for (const ProfileEvent& e : events) runs[e.run].push_back(&e);
  for (const auto& [number, steps] : runs) {
    std::int64_t start = steps.front()->start_ns, end = start;
    for (const ProfileEvent* e : steps) {
      out.node(*e);
      start = std::min(start, e->start_ns);
      end = std::max(end, e->start_ns + e->duration_ns);
    }
    for (const char* name : {"SequentialExecutor::Execute", "model_run"}) {
      out.session(name, out.thread(*steps.front()), microseconds(start), microseconds(end - start));
    }
  }
  write_file_atomically(path, out.take());
}

}  // namespace sdx::session
