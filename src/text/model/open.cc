#include "text/model/open.h"

#include <algorithm>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "tensor/gguf/gguf_names.h"
#include "text/adapters/network.h"
#include "text/model/accuracy.h"
#include "text/model/paged/paged_graph.h"
#include "text/model/weights_model.h"

namespace sdx::text {

std::filesystem::path model_place(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error) || std::filesystem::exists(path / "genai_config.json", error) ||
      find_network(path) || has_weights_alone(path)) {
    return path;
  }
  return gguf_in(path).value_or(path);
}

OpenedModel open_model(const std::filesystem::path& path, const OpenOptions& options) {
  namespace fs = std::filesystem;
  constexpr DataType kCacheTypes[] = {DataType::undefined, DataType::float32, DataType::float16, DataType::bfloat16,
                                      DataType::int8};
  if (std::find(std::begin(kCacheTypes), std::end(kCacheTypes), options.cache_type) == std::end(kCacheTypes)) {
    fail(ErrorCode::invalid_argument, "keys and values can be float32, float16, bfloat16 or int8, not {}",
         name(options.cache_type));
  }
  check_accuracy_level(options.accuracy_level);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) fail(ErrorCode::io, "cannot open '{}': there is no such file or folder", path.string());
  if (!fs::is_directory(status)) {
    if (path.extension() != ".onnx") return open_weights(path, options);
    fail(ErrorCode::invalid_argument, "'{}' is only the network: name its folder", path.string());
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
class MaskUses {
 public:
  MaskUses(const Graph& g, const std::vector<std::vector<NodeId>>& uses)
      : g_(g), uses_(uses), seen_(g.values().size()), seen_extents_(g.values().size()) {}

  bool are_lengths_alone(ValueId mask) {
    open_.push_back({mask, false});
    while (!open_.empty()) {
      const Item item = open_.back();
      open_.pop_back();
      std::vector<bool>& seen = item.extent ? seen_extents_ : seen_;
      if (seen[item.value]) continue;
      seen[item.value] = true;
      for (const NodeId user : uses_[item.value]) {
        if (!(item.extent ? serves_as_length(g_.node(user), item.value) : serves_as_mask(g_.node(user)))) return false;
      }
    }
    return true;
  }

 private:
  struct Item {
    ValueId value;
    bool extent;  // computed from the mask's shape
  };

  bool follow(const Node& n, bool extent) {
    if (n.outputs.empty() || n.outputs[0] == kNoValue) return false;
    open_.push_back({n.outputs[0], extent});
    return true;
  }

  bool serves_as_mask(const Node& n) {
    if (!n.domain.empty()) return false;
    if (n.op_type == "ReduceSum") return true;
    return (n.op_type == "Cast" || n.op_type == "Shape") && follow(n, n.op_type == "Shape");
  }

  // The extent may serve as total_sequence_length, and nowhere else.
  bool serves_as_length(const Node& n, ValueId v) {
    if (n.op_type == "GroupQueryAttention" && n.domain == "com.microsoft") {
      return n.inputs.size() > 6 && n.inputs[6] == v && std::count(n.inputs.begin(), n.inputs.end(), v) == 1;
    }
    const bool same = n.op_type == "Gather" || n.op_type == "Cast" || n.op_type == "Squeeze" || n.op_type == "Slice";
    return n.domain.empty() && same && follow(n, true);
  }

  const Graph& g_;
  const std::vector<std::vector<NodeId>>& uses_;
  std::vector<bool> seen_, seen_extents_;
  std::vector<Item> open_;
};

}  // namespace

bool works_in_place(const Graph& g, const DecoderNames& names) {
  const std::vector<std::vector<NodeId>> uses = g.uses();
  const auto output = [&](const std::string& name) -> std::optional<ValueId> {
    for (std::size_t i = 0; i < g.outputs().size(); ++i) {
      if (g.output_names()[i] == name) return g.outputs()[i];
    }
    return std::nullopt;
  };
  bool some = false;
  for (int layer = 0;; ++layer) {
    const auto key = g.find(of_layer(names.past_key, layer)), value = g.find(of_layer(names.past_value, layer));
    if (!key || !value) break;
    const auto new_key = output(of_layer(names.present_key, layer)), new_value = output(of_layer(names.present_value, layer));
    if (!new_key || !new_value || !read_by_attention_alone(g, *key, *new_key, 3, 1, uses) ||
        !read_by_attention_alone(g, *value, *new_value, 4, 2, uses)) {
      return false;
    }
    some = true;
    if (names.past_key.find("%d") == std::string::npos) break;  // one layer is all that such names can mean
  }
  const auto mask = g.find(names.mask);
  return some && mask && MaskUses(g, uses).are_lengths_alone(*mask);
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

// The place of a tensor in the folder's files, where its data stay.
std::optional<FilePlace> place_in(const std::filesystem::path& folder, const Tensor& t) {
  constexpr std::size_t kSmall = 4096;
  if (t.dtype() == DataType::string || t.bytes() < kSmall) return std::nullopt;
  const auto at = MappedFile::place_of(t.data());
  if (!at || at->path.parent_path() != folder) return std::nullopt;
  return FilePlace{at->path.filename().string(), at->offset};
}

std::unique_ptr<Session> session_of(const Model& model, const std::filesystem::path& file, const SessionOptions& options) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(file, error).parent_path();
  const std::string bytes = write_model(model, [&](const Tensor& t) { return place_in(folder, t); });
  return std::make_unique<Session>(Session::from_bytes(std::as_bytes(std::span<const char>(bytes)), options, folder));
}

// The network with adapters and accuracies; nothing where neither is asked for.
std::optional<Model> read_adapted(const Decoder& decoder, const std::filesystem::path& file, const OpenOptions& options,
                                  const std::string& architecture) {
  if (options.loras.empty() && options.accuracy_level == 0) return std::nullopt;
  Model model = read_model(file);
  set_accuracy_level(model.graph, options.accuracy_level);
  if (options.loras.empty()) return model;
  const DecoderConfig config = config_for_adapters(model.graph, architecture, of_layer(decoder.names.past_key, 0));
  add_adapters(model, read_adapters(options.loras, config));
  return model;
}

// The network with its attention over blocks. Nothing, and why_not_paged, where it cannot be written so.
bool open_paged(Decoder& decoder, const std::filesystem::path& file, const std::optional<Model>& adapted,
                const OpenOptions& options) {
  if (!may_be_native(options.session)) {
    decoder.why_not_paged = "providers other than cpu have no attention over blocks";
    return false;
  }
  Model model = adapted ? *adapted : read_model(file);
  decoder.why_not_paged = model.functions.empty() ? page_attention(model, decoder.names, {options.cache_type, false})
                                                  : "the network has its own functions";
  if (!decoder.paged()) return false;
  SessionOptions with = options.session;
  with.plan_cache_size = std::max<std::size_t>(with.plan_cache_size, kPagedPlans);
  auto session = session_of(model, file, with);
  if (!is_native(*session)) {
    decoder.why_not_paged = "providers other than cpu have no attention over blocks";
    return false;
  }
  decoder.session = std::move(session);
  decoder.in_place = true;
  return true;
}

}  // namespace

void open_session(Decoder& decoder, const std::filesystem::path& file, const OpenOptions& options, std::int64_t context,
                  const std::string& architecture) {
  if (context > 0 && options.context > context) {
    fail(ErrorCode::invalid_argument, "a context of {} tokens is requested; the model has {}", options.context, context);
  }
  const std::optional<Model> adapted = read_adapted(decoder, file, options, architecture);
  const bool paged = open_paged(decoder, file, adapted, options);
  if (!paged) {
    decoder.session =
        adapted ? session_of(*adapted, file, options.session) : std::make_unique<Session>(Session::open(file, options.session));
  }
  decoder.describe();
  decoder.context = options.context > 0 ? options.context : context;
  check_cache_type(decoder, options.cache_type);
  if (paged) return;
  // Vendors' libraries have rules of their own about a cache's memory.
  decoder.in_place =
      is_native(*decoder.session) && works_in_place(adapted ? adapted->graph : read_model(file).graph, decoder.names);
}

}  // namespace sdx::text
