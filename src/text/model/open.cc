#include "text/model/open.h"

#include <algorithm>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "text/model/paged/paged_graph.h"
#include "text/model/weights_model.h"

namespace sdx::text {

OpenedModel open_model(const std::filesystem::path& path, const OpenOptions& options) {
  namespace fs = std::filesystem;
  constexpr DataType kCacheTypes[] = {DataType::undefined, DataType::float32, DataType::float16, DataType::bfloat16,
                                      DataType::int8};
  if (std::find(std::begin(kCacheTypes), std::end(kCacheTypes), options.cache_type) == std::end(kCacheTypes)) {
    fail(ErrorCode::invalid_argument, "keys and values can be float32, float16, bfloat16 or int8, not {}",
         name(options.cache_type));
  }
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) fail(ErrorCode::io, "cannot open '{}': there is no such file or folder", path.string());
  if (!fs::is_directory(status)) {
    if (path.extension() != ".onnx") return open_weights(path, options);
    fail(ErrorCode::invalid_argument, "'{}' is a network alone: name the folder that it lies in", path.string());
  }
  if (!options.loras.empty()) {
    fail(ErrorCode::not_implemented, "LoRA adapters are applied to .gguf models, not to what '{}' holds", path.string());
  }
  if (fs::exists(path / "genai_config.json", error)) return open_genai(path, options);
  if (!find_network(path) && has_weights_alone(path)) return open_weights(path, options);
  return open_onnx_folder(path, options);
}

namespace {

bool read_by_attention_alone(const Graph& g, ValueId past, ValueId present, std::size_t input, std::size_t output,
                             const std::vector<std::vector<NodeId>>& uses) {
  if (uses[past].size() != 1) return false;
  const Node& n = g.node(uses[past][0]);
  return n.op_type == "GroupQueryAttention" && n.domain == "com.microsoft" && n.inputs.size() > input &&
         n.inputs[input] == past && n.outputs.size() > output && n.outputs[output] == present &&
         std::count(n.inputs.begin(), n.inputs.end(), past) == 1 && uses[present].empty();
}

// Its sum and its shape are all that is asked of the mask: zeros behind the tokens change nothing.
bool gives_lengths_alone(const Graph& g, ValueId mask, const std::vector<std::vector<NodeId>>& uses) {
  return std::all_of(uses[mask].begin(), uses[mask].end(), [&](NodeId id) {
    const Node& n = g.node(id);
    if (n.op_type == "Cast" && n.domain.empty()) return gives_lengths_alone(g, n.outputs.at(0), uses);
    if (n.op_type == "ReduceSum" && n.domain.empty()) return true;
    if (n.op_type != "Shape" || !n.domain.empty()) return false;
    // The extent may serve as total_sequence_length, and nowhere else.
    std::vector<ValueId> open{n.outputs.at(0)};
    while (!open.empty()) {
      const ValueId v = open.back();
      open.pop_back();
      for (const NodeId user : uses[v]) {
        const Node& u = g.node(user);
        if (u.op_type == "GroupQueryAttention") {
          if (u.inputs.size() <= 6 || u.inputs[6] != v || std::count(u.inputs.begin(), u.inputs.end(), v) != 1) return false;
        } else if (u.op_type == "Gather" || u.op_type == "Cast" || u.op_type == "Squeeze" || u.op_type == "Slice") {
          open.push_back(u.outputs.at(0));
        } else {
          return false;
        }
      }
    }
    return true;
  });
}

std::string layer_name(const std::string& pattern, int layer) {
  const std::size_t at = pattern.find("%d");
  return at == std::string::npos ? pattern : pattern.substr(0, at) + std::to_string(layer) + pattern.substr(at + 2);
}

}  // namespace

bool works_in_place(const Graph& g, const DecoderNames& names) {
  const std::vector<std::vector<NodeId>> uses = g.uses();
  const auto output = [&](const std::string& name) -> std::optional<ValueId> {
    for (std::size_t i = 0; i < g.outputs().size(); ++i) {
      if (g.output_names()[i] == name) return g.outputs()[i];
    }
    return std::nullopt;
  };
  int layer = 0;
  for (;; ++layer) {
    const auto key = g.find(layer_name(names.past_key, layer)), value = g.find(layer_name(names.past_value, layer));
    if (!key || !value) break;
    const auto new_key = output(layer_name(names.present_key, layer)), new_value = output(layer_name(names.present_value, layer));
    if (!new_key || !new_value || !read_by_attention_alone(g, *key, *new_key, 3, 1, uses) ||
        !read_by_attention_alone(g, *value, *new_value, 4, 2, uses)) {
      return false;
    }
  }
  const auto mask = g.find(names.mask);
  return layer > 0 && mask && gives_lengths_alone(g, *mask, uses);
}

void check_cache_type(const Decoder& d, DataType wanted) {
  if (wanted == DataType::undefined || (d.has_cache && d.cache_type == wanted)) return;
  fail(ErrorCode::invalid_argument, "keys and values cannot be {} in this model{}: {}", name(wanted),
       d.has_cache ? fmt::format(", they are {}", name(d.cache_type)) : "", d.why_not_paged);
}

namespace {

// Blocks need the engine's own kernels.
bool may_be_native(const SessionOptions& o) {
  return std::all_of(o.providers.begin(), o.providers.end(), [](const std::string& p) { return p == "cpu" || p == "CPU"; });
}

bool is_native(const Session& session) {
  const Report report = session.report();
  return report.runtime == "native" && report.providers == std::vector<std::string>{"cpu"};
}

// What lies in the folder's files stays there.
std::optional<FilePlace> place_in(const std::filesystem::path& folder, const Tensor& t) {
  constexpr std::size_t kSmall = 4096;
  if (t.dtype() == DataType::string || t.bytes() < kSmall) return std::nullopt;
  const auto at = MappedFile::place_of(t.data());
  if (!at || at->path.parent_path() != folder) return std::nullopt;
  return FilePlace{at->path.filename().string(), at->offset};
}

// The network with its attention over blocks. Nothing, and why_not_paged, where it cannot be written so.
bool open_paged(Decoder& decoder, const std::filesystem::path& file, const OpenOptions& options) {
  if (!may_be_native(options.session)) {
    decoder.why_not_paged = "providers other than cpu have no attention over blocks";
    return false;
  }
  Model model = read_model(file);
  decoder.why_not_paged = model.functions.empty() ? page_attention(model, decoder.names, {options.cache_type, false})
                                                  : "the network has functions of its own";
  if (!decoder.paged()) return false;
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(file, error).parent_path();
  const std::string bytes = write_model(model, [&](const Tensor& t) { return place_in(folder, t); });
  SessionOptions with = options.session;
  with.plan_cache_size = std::max<std::size_t>(with.plan_cache_size, kPagedPlans);
  auto session = std::make_unique<Session>(Session::from_bytes(std::as_bytes(std::span<const char>(bytes)), with, folder));
  if (!is_native(*session)) {
    decoder.why_not_paged = "providers other than cpu have no attention over blocks";
    return false;
  }
  decoder.session = std::move(session);
  decoder.in_place = true;
  return true;
}

}  // namespace

void open_session(Decoder& decoder, const std::filesystem::path& file, const OpenOptions& options, std::int64_t context) {
  if (context > 0 && options.context > context) {
    fail(ErrorCode::invalid_argument, "a context of {} tokens is asked for, the model has {}", options.context, context);
  }
  const bool paged = open_paged(decoder, file, options);
  if (!paged) decoder.session = std::make_unique<Session>(Session::open(file, options.session));
  decoder.describe();
  decoder.context = options.context > 0 ? options.context : context;
  check_cache_type(decoder, options.cache_type);
  // Vendors' libraries have rules of their own about a cache's memory.
  if (!paged) decoder.in_place = is_native(*decoder.session) && works_in_place(read_model(file).graph, decoder.names);
}

}  // namespace sdx::text
