#include "onnx/writer.h"

#include <algorithm>
#include <protozero/pbf_writer.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/new_file.h"
#include "graph/notes.h"
#include "onnx/attributes.h"
#include "onnx/types.h"
#include "ops/op.h"
#include "tensor/pb.h"

namespace sdx {
namespace {

using Writer = protozero::pbf_writer;

constexpr std::size_t kMaxMessage = (std::size_t{1} << 31) - 1;
constexpr std::int64_t kLeastIrVersion = 4;
constexpr std::int64_t kDefaultIrVersion = 10;

// The file that large constants go to.
class ExternalWriter {
 public:
  ExternalWriter(const WriteOptions& options, std::string name)
      : threshold_(options.external_above), alignment_(options.alignment), name_(std::move(name)) {}

  // Returns the tensor's future place in the external file if it belongs there, and remembers the tensor.
  std::optional<FilePlace> take(const Tensor& t) {
    if (threshold_ == 0 || t.dtype() == DataType::string || t.bytes() < threshold_) return std::nullopt;
    return FilePlace{name_, add(t)};
  }

  // One tensor in memory at a time.
  void write(const std::filesystem::path& folder) const {
    if (items_.empty()) return;
    NewFile file(folder / path_of(name_));
    for (const auto& [at, tensor] : items_) {
      const OwnedBytes raw = raw_bytes(tensor);
      file.write(raw.data.data(), raw.data.size(), at);
    }
    file.publish();
  }

  std::uint64_t bytes() const { return size_; }

 private:
  std::uint64_t add(const Tensor& t) {
    size_ = (size_ + alignment_ - 1) / alignment_ * alignment_;
    const std::uint64_t at = size_;
    const std::size_t bytes = raw_bytes(t).data.size();
    items_.push_back({at, t});
    size_ += bytes;
    return at;
  }

  struct Item {
    std::uint64_t at;
    Tensor tensor;
  };
  std::size_t threshold_, alignment_;
  std::string name_;
  std::uint64_t size_ = 0;
  std::vector<Item> items_;
};

void add_pair(Writer& w, std::uint32_t field, const std::string& key, const std::string& value) {
  std::string entry;
  Writer e(entry);
  e.add_string(1, key);
  e.add_string(2, value);
  w.add_message(field, entry);
}

void add_value_info(Writer& w, std::uint32_t field, const std::string& name, const Type& type) {
  std::string info;
  Writer v(info);
  v.add_string(1, name);
  if (type.known()) v.add_message(2, write_type(type));
  w.add_message(field, info);
}

std::string external_tensor(const Tensor& t, const std::string& name, const FilePlace& place) {
  std::string out;
  Writer w(out);
  w.add_packed_int64(1, t.shape().begin(), t.shape().end());
  w.add_int32(2, static_cast<std::int32_t>(t.dtype()));
  w.add_string(8, name);
  add_pair(w, 13, "location", place.location);
  add_pair(w, 13, "offset", std::to_string(place.offset));
  add_pair(w, 13, "length", std::to_string(raw_bytes(t).data.size()));
  w.add_enum(14, 1);
  return out;
}

struct AttributeWriter {
  Writer& w;
  void operator()(std::int64_t v) const { w.add_int64(3, v); }
  void operator()(float v) const { w.add_float(2, v); }
  void operator()(const std::string& v) const { w.add_bytes(4, v); }
  void operator()(const Tensor& v) const { w.add_message(5, encode_tensor(v, "")); }
  void operator()(const Type& v) const { w.add_message(14, write_type(v)); }
  void operator()(const std::vector<std::int64_t>& v) const { w.add_packed_int64(8, v.begin(), v.end()); }
  void operator()(const std::vector<float>& v) const { w.add_packed_float(7, v.begin(), v.end()); }
  void operator()(const std::vector<std::string>& v) const {
    for (const std::string& s : v) w.add_bytes(9, s);
  }
  void operator()(const std::vector<Tensor>& v) const {
    for (const Tensor& t : v) w.add_message(10, encode_tensor(t, ""));
  }
  void operator()(const std::vector<Type>& v) const {
    for (const Type& t : v) w.add_message(15, write_type(t));
  }
};

std::string write_attribute(const std::string& name, const AttributeValue& value) {
  std::string out;
  Writer w(out);
  w.add_string(1, name);
  std::visit(AttributeWriter{w}, value);
  w.add_enum(20, static_cast<std::int32_t>(type_of(value)));
  return out;
}

// One graph's names for its values in the file. A subgraph uses the enclosing graph's names for its captures, and none of the
// surrounding graphs' names for its results, because ONNX forbids hiding them. Its inputs keep their names, since operators
// (BeamSearch of com.microsoft) know them by these, but for those that would hide what the subgraph captures.
class Names {
 public:
  // `around`: the names of the enclosing graph; null for a model's main graph.
  Names(const Graph& graph, const std::vector<std::string>& captured, const Names* around)
      : graph_(graph), names_(graph.values().size()) {
    if (around != nullptr) taken_ = around->taken_;
    const std::size_t formals = graph.inputs().size() - captured.size();
    // A value may be captured twice; both are called the same.
    for (std::size_t i = 0; i < captured.size(); ++i) {
      names_[graph.inputs()[formals + i]] = captured[i];
      taken_.insert(captured[i]);
    }
    std::unordered_set<std::string> here(captured.begin(), captured.end());
    for (std::size_t i = 0; i < formals; ++i) {
      const ValueId v = graph.inputs()[i];
      const std::string& own = graph.value(v).name;
      if (!here.insert(own).second) {
        settle(v, own);
        continue;
      }
      names_[v] = own;
      taken_.insert(own);
    }
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      around == nullptr ? name_output(i) : name_inner_output(i, formals);
    }
    for (ValueId v = 0; v < names_.size(); ++v) settle(v, graph.value(v).name);
  }

  const std::string& operator[](ValueId v) const { return names_.at(v); }
  const std::vector<std::pair<ValueId, std::string>>& copies() const { return copies_; }
  const std::string& output(std::size_t i) const { return outputs_.at(i); }

 private:
  void settle(ValueId v, const std::string& wanted) {
    if (names_[v].empty()) names_[v] = free_name(wanted);
  }
  std::string free_name(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 0; !taken_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
    return name;
  }
  // Outputs of subgraphs go by their place. A captured value is none by itself, and no value is one twice.
  void name_inner_output(std::size_t i, std::size_t formals) {
    const ValueId v = graph_.outputs()[i];
    const auto captures = graph_.inputs().begin() + static_cast<std::ptrdiff_t>(formals);
    const auto before = graph_.outputs().begin() + static_cast<std::ptrdiff_t>(i);
    const bool captured = std::find(captures, graph_.inputs().end(), v) != graph_.inputs().end();
    if (!captured && std::find(graph_.outputs().begin(), before, v) == before) {
      settle(v, graph_.output_names()[i]);
      outputs_.push_back(names_[v]);
      return;
    }
    copies_.emplace_back(v, free_name(graph_.output_names()[i]));
    outputs_.push_back(copies_.back().second);
  }
  void name_output(std::size_t i) {
    const ValueId v = graph_.outputs()[i];
    const std::string& shown = graph_.output_names()[i];
    if (names_[v].empty() && !taken_.contains(shown)) settle(v, shown);
    if (names_[v] == shown) {
      outputs_.push_back(names_[v]);
      return;
    }
    if (names_[v].empty()) settle(v, graph_.value(v).name);
    if (std::find(copies_.begin(), copies_.end(), std::pair(v, shown)) != copies_.end()) {  // listed twice
      outputs_.push_back(shown);
      return;
    }
    if (!taken_.insert(shown).second) {
      fail(ErrorCode::invalid_argument, "the graph's output name '{}' is the name of another input or output as well", shown);
    }
    copies_.emplace_back(v, shown);
    outputs_.push_back(shown);
  }

  const Graph& graph_;
  std::vector<std::string> names_;
  std::unordered_set<std::string> taken_;
  std::vector<std::pair<ValueId, std::string>> copies_;  // outputs that need an Identity
  std::vector<std::string> outputs_;
};

using PlaceOf = std::function<std::optional<FilePlace>(const Tensor&)>;

class ModelWriter {
 public:
  ModelWriter(const Model& model, PlaceOf place, const std::set<std::string, std::less<>>& typed = {})
      : model_(model), place_(std::move(place)), typed_(typed), opsets_(model.opsets) {}

  std::string run() {
    std::string out;
    Writer w(out);
    const std::int64_t ir = model_.ir_version == 0 ? kDefaultIrVersion : std::max(model_.ir_version, kLeastIrVersion);
    w.add_int64(1, ir);
    if (!model_.producer_name.empty()) w.add_string(2, model_.producer_name);
    if (!model_.producer_version.empty()) w.add_string(3, model_.producer_version);
    if (!model_.domain.empty()) w.add_string(4, model_.domain);
    if (model_.model_version != 0) w.add_int64(5, model_.model_version);
    if (!model_.doc.empty()) w.add_string(6, model_.doc);
    {
      Writer graph(w, 7);
      write_graph(model_.graph, {}, graph, nullptr);
    }
    for (const auto& [domain, version] : opsets_) {
      std::string import;
      Writer o(import);
      o.add_string(1, domain);
      o.add_int64(2, version);
      w.add_message(8, import);
    }
    for (const auto& [key, value] : model_.metadata) add_pair(w, 14, key, value);
    for (const Function& f : model_.functions) w.add_message(25, f.bytes);
    if (out.size() > kMaxMessage) {
      fail(ErrorCode::invalid_argument,
           "the model takes {} bytes; an ONNX file may have 2 GiB at most: put large tensors into an external file", out.size());
    }
    return out;
  }

 private:
  // `around`: null for the model's own graph.
  void write_graph(const Graph& g, const std::vector<std::string>& captured, Writer& w, const Names* around);
  std::string write_node(const Node& n, const Names& names);
  std::string write_subgraph(const Subgraph& s, const Names& names);
  void note_version(const Node& n);

  const Model& model_;
  PlaceOf place_;  // of constants outside the model's own bytes; may be empty
  std::set<std::string, std::less<>> typed_;
  std::map<std::string, int> opsets_;
};

std::string ModelWriter::write_subgraph(const Subgraph& s, const Names& names) {
  std::vector<std::string> captured;
  for (const ValueId v : s.captures) captured.push_back(names[v]);
  std::string out;
  Writer w(out);
  w.add_string(1, s.attribute);
  {
    Writer graph(w, 6);
    write_graph(*s.graph, captured, graph, &names);
  }
  w.add_enum(20, static_cast<std::int32_t>(AttributeType::g));
  return out;
}

// A file imports one version of a domain; nodes from functions may have come with another, which is harmless where both mean the
// same definition.
void ModelWriter::note_version(const Node& n) {
  const auto [import, added] = opsets_.emplace(n.domain, n.version);
  if (added || import->second == n.version) return;
  const ops::OpDef* const own = ops::find(n);
  const ops::OpDef* const written = ops::table().find(n.domain, n.op_type, import->second);
  if (own != nullptr && own == written) return;
  fail(ErrorCode::invalid_argument, "cannot write operator {}: it has opset {} of '{}' but the model imports {}", n.op_type,
       n.version, n.domain.empty() ? "ai.onnx" : n.domain, import->second);
}

std::string ModelWriter::write_node(const Node& n, const Names& names) {
  std::string out;
  Writer w(out);
  for (const ValueId v : n.inputs) w.add_string(1, v == kNoValue ? std::string() : names[v]);
  for (const ValueId v : n.outputs) w.add_string(2, v == kNoValue ? std::string() : names[v]);
  if (!n.name.empty()) w.add_string(3, n.name);
  w.add_string(4, n.op_type);
  for (const auto& [name, value] : n.attributes.items()) {
    if (!name.starts_with(kNotePrefix)) w.add_message(5, write_attribute(name, value));
  }
  for (const Subgraph& s : n.subgraphs) w.add_message(5, write_subgraph(s, names));
  if (!n.domain.empty()) w.add_string(7, n.domain);
  if (!n.overload.empty()) w.add_string(8, n.overload);
  note_version(n);
  return out;
}

void ModelWriter::write_graph(const Graph& g, const std::vector<std::string>& captured, Writer& w, const Names* around) {
  const Names names(g, captured, around);
  for (const Node& n : g.nodes()) {
    if (!n.removed) w.add_message(1, write_node(n, names));
  }
  for (const auto& [v, shown] : names.copies()) {
    opsets_.emplace("", 13);
    std::string copy;
    Writer n(copy);
    n.add_string(1, names[v]);
    n.add_string(2, shown);
    n.add_string(4, "Identity");
    w.add_message(1, copy);
  }
  // Subgraphs must have a name. It also keeps the message from being empty, which protozero would drop.
  w.add_string(2, g.name.empty() && around != nullptr ? "graph" : g.name);
  for (ValueId v = 0; v < g.values().size(); ++v) {
    const auto& constant = g.value(v).constant;
    if (!constant) continue;
    const std::optional<FilePlace> place = around == nullptr && place_ ? place_(*constant) : std::nullopt;
    w.add_message(
        5, place ? external_tensor(*constant, names[v], *place) : encode_tensor(*constant, names[v], typed_.contains(names[v])));
  }
  const std::size_t formals = g.inputs().size() - captured.size();
  for (std::size_t i = 0; i < formals; ++i) add_value_info(w, 11, names[g.inputs()[i]], g.value(g.inputs()[i]).type);
  std::vector<bool> described(g.values().size(), false);
  for (std::size_t i = 0; i < g.outputs().size(); ++i) {
    const ValueId v = g.outputs()[i];
    described[v] = described[v] || names.output(i) == names[v];
    // A model's outputs need a shape in the file: if inference finds none, the declared one.
    Type type = g.value(v).type;
    if (type.is_tensor() && !type.shape) type.shape = g.value(v).declared.shape;
    add_value_info(w, 12, names.output(i), type);
  }
  for (ValueId v = 0; v < g.values().size(); ++v) {
    const ValueInfo& info = g.value(v);
    if (info.producer != kNoNode && !described[v] && info.type.known()) add_value_info(w, 13, names[v], info.type);
  }
}

std::string external_name(const std::filesystem::path& path, const WriteOptions& options) {
  std::string name = options.external_name.empty() ? path.filename().string() + ".data" : options.external_name;
  if (name.find('/') != std::string::npos || name == "." || name == "..") {
    fail(ErrorCode::invalid_argument, "the external file's name '{}' must not name a folder", name);
  }
  return name;
}

}  // namespace

std::string write_model(const Model& model) { return ModelWriter(model, nullptr).run(); }

std::string write_model(const Model& model, const std::function<std::optional<FilePlace>(const Tensor&)>& place) {
  return ModelWriter(model, place).run();
}

std::uint64_t write_model(const Model& model, const std::filesystem::path& path, const WriteOptions& options) {
  ExternalWriter external(options, external_name(path, options));
  const std::string bytes = ModelWriter(
                                model, [&](const Tensor& t) { return external.take(t); }, options.typed)
                                .run();
  if (!options.dry_run) {
    external.write(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));
    NewFile file(path);
    file.append(std::as_bytes(std::span(bytes)));
    file.publish();
  }
  return bytes.size() + external.bytes();
}

}  // namespace sdx
