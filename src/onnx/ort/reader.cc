#include <algorithm>
#include <charconv>
#include <limits>
#include <protozero/pbf_writer.hpp>

#include "base/error.h"
#include "onnx/ort/ort_model.h"
#include "ort_model_generated.h"

namespace sdx {
namespace {

namespace file = ort_file;
using Writer = protozero::pbf_writer;
template <class T>
using List = flatbuffers::Vector<flatbuffers::Offset<T>>;

constexpr int kNewestVersion = 6;  // eight-bit floats
constexpr std::uint32_t kMaxDepth = 256;
constexpr std::size_t kBytesPerTable = 8;  // a table takes at least as many: one that counts more is shared, over and over
constexpr std::uint32_t kAlwaysTables = 1'000'000;
constexpr std::size_t kOutside = std::size_t{64} << 10;  // content from here on is viewed where it lies
// Limits on the text of a model in its other form: .ort files hold a name once, and the other form holds it at every use.
constexpr std::size_t kAlwaysText = std::size_t{64} << 20;
constexpr std::size_t kTextPerByte = 16;
constexpr const char* kHere = ".";  // the location of tensors in the file itself

class Content : public ExternalData {
 public:
  explicit Content(OwnedBytes bytes) : bytes_(std::move(bytes)) {}
  OwnedBytes read(const ExternalReference& reference, std::size_t size) override {
    const std::size_t all = bytes_.data.size();
    if (reference.location != kHere || reference.offset > all || size > all - reference.offset) {
      fail(ErrorCode::invalid_model, "its data are outside the .ort file");
    }
    return {bytes_.data.subspan(reference.offset, size), bytes_.owner};
  }

 private:
  OwnedBytes bytes_;
};

std::string_view text(const flatbuffers::String* s) { return s == nullptr ? std::string_view() : s->string_view(); }

// A kind of the file, as the enumeration of ONNX that it follows. All kinds of attributes.
enum Kind { kFloat = 1, kInt, kString, kTensor, kGraph, kFloats, kInts, kStrings, kTensors, kGraphs };

class Converter {
 public:
  explicit Converter(std::span<const std::byte> data)
      : data_(data), most_(std::min(kAlwaysText + kTextPerByte * data.size(), std::size_t{std::numeric_limits<int>::max()})) {}

  std::string run(const file::Model& m);
  bool has_saved_optimizations() const { return saved_; }

 private:
  void add_text(Writer& w, std::uint32_t field, const flatbuffers::String* s) {
    if (s == nullptr || s->size() == 0) return;
    charge(s->size());
    w.add_bytes(field, s->data(), s->size());
  }
  // Names that are left out count.
  void add_names(Writer& w, std::uint32_t field, const List<flatbuffers::String>* names) {
    if (names == nullptr) return;
    for (const flatbuffers::String* s : *names) {
      charge(s->size() + 2);
      w.add_bytes(field, s->data(), s->size());
    }
  }
  void charge(std::size_t bytes) {
    if (bytes > most_ - used_) {
      fail(ErrorCode::out_of_memory, "the .ort file spells out more than {} MB of names and small tensors", most_ >> 20);
    }
    used_ += bytes;
  }
  template <class T, class F>
  void add_list(Writer& w, std::uint32_t field, const List<T>* list, F&& add) {
    if (list == nullptr) return;
    for (const T* item : *list) {
      charge(2);
      Writer inner(w, field);
      add(inner, *item);
    }
  }

  void add_type(Writer& w, const file::AnyType& type);
  void add_extents(Writer& w, const file::Extents& extents);
  void add_named_type(Writer& w, const flatbuffers::String* name, const file::AnyType* type);
  void add_tensor(Writer& w, const file::Tensor& t);
  void add_place(Writer& w, const flatbuffers::Vector<std::uint8_t>& content);
  void add_sparse(Writer& w, const file::SparseTensor& t);
  void add_attribute(Writer& w, const file::Attribute& a);
  void add_value(Writer& w, const file::Attribute& a);
  void add_node(Writer& w, const file::Node& n);
  void add_graph(Writer& w, const file::Graph& g);

  std::span<const std::byte> data_;
  std::size_t most_, used_ = 0;
  bool saved_ = false;
};

// Each extent is a string of its own: a nested message without content, which means an unknown extent or a scalar, would be left
// out otherwise.
void Converter::add_extents(Writer& w, const file::Extents& extents) {
  std::string shape;
  Writer axes(shape);
  if (extents.axes() != nullptr) {
    for (const file::Axis* a : *extents.axes()) {
      std::string axis;
      Writer one(axis);
      charge(16);
      add_text(one, 3, a->denotation());
      const file::Extent* e = a->extent();
      if (e != nullptr && e->kind() == 1) one.add_int64(1, e->number());
      if (e != nullptr && e->kind() == 2) add_text(one, 2, e->symbol());
      axes.add_message(1, axis);
    }
  }
  w.add_message(2, shape);
}

void Converter::add_type(Writer& w, const file::AnyType& type) {
  charge(16);
  if (const auto* tensor = type.content_as_TensorType()) {
    Writer t(w, 1);
    t.add_int32(1, tensor->element());
    if (tensor->extents() != nullptr) add_extents(t, *tensor->extents());
  } else if (const auto* sequence = type.content_as_SequenceType()) {
    Writer t(w, 4);
    if (sequence->element() == nullptr) return;
    Writer element(t, 1);
    add_type(element, *sequence->element());
  } else if (const auto* map = type.content_as_MapType()) {
    Writer t(w, 5);
    t.add_int32(1, map->key());
    if (map->value() == nullptr) return;
    Writer value(t, 2);
    add_type(value, *map->value());
  }
}

void Converter::add_named_type(Writer& w, const flatbuffers::String* name, const file::AnyType* type) {
  charge(text(name).size());
  w.add_bytes(1, text(name).data(), text(name).size());
  if (type == nullptr) return;
  Writer t(w, 2);
  add_type(t, *type);
  add_text(t, 6, type->denotation());
}

void Converter::add_place(Writer& w, const flatbuffers::Vector<std::uint8_t>& content) {
  const auto at = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(content.data()) - data_.data());
  const std::pair<const char*, std::string> entries[] = {
      {"location", kHere}, {"offset", std::to_string(at)}, {"length", std::to_string(content.size())}};
  for (const auto& [key, value] : entries) {
    charge(40);
    Writer entry(w, 13);
    entry.add_string(1, key);
    entry.add_string(2, value);
  }
  w.add_enum(14, 1);
}

void Converter::add_tensor(Writer& w, const file::Tensor& t) {
  if (t.extents() != nullptr) {
    charge(10 * std::size_t{t.extents()->size()});
    w.add_packed_int64(1, t.extents()->begin(), t.extents()->end());
  }
  w.add_int32(2, t.element());
  add_text(w, 8, t.name());
  charge(16);
  if (t.file_offset() >= 0 && t.content() == nullptr) {
    fail(ErrorCode::not_implemented, "tensor '{}' is in a file beside the .ort file; such files are not supported",
         text(t.name()));
  }
  add_names(w, 6, t.text());
  if (t.content() == nullptr) return;
  const flatbuffers::Vector<std::uint8_t>& content = *t.content();
  if (content.size() >= kOutside) return add_place(w, content);
  charge(content.size());
  w.add_bytes(9, reinterpret_cast<const char*>(content.data()), content.size());
}

void Converter::add_sparse(Writer& w, const file::SparseTensor& t) {
  charge(8);
  if (t.values() != nullptr) {
    Writer values(w, 1);
    add_tensor(values, *t.values());
  }
  if (t.indices() != nullptr) {
    Writer indices(w, 2);
    add_tensor(indices, *t.indices());
  }
  if (t.extents() == nullptr) return;
  charge(10 * std::size_t{t.extents()->size()});
  w.add_packed_int64(3, t.extents()->begin(), t.extents()->end());
}

void Converter::add_value(Writer& w, const file::Attribute& a) {
  const auto need = [&](const void* part) {
    if (part == nullptr) fail(ErrorCode::invalid_model, "attribute '{}' has no value", text(a.name()));
  };
  switch (a.kind()) {
    case kFloat: return w.add_float(2, a.number());
    case kInt: return w.add_int64(3, a.integer());
    case kString: {
      const std::string_view value = text(a.text());
      charge(value.size());
      return w.add_bytes(4, value.data(), value.size());
    }
    case kTensor: {
      need(a.tensor());
      Writer tensor(w, 5);
      return add_tensor(tensor, *a.tensor());
    }
    case kGraph: {
      need(a.graph());
      Writer graph(w, 6);
      return add_graph(graph, *a.graph());
    }
    case kFloats:
      if (a.numbers() == nullptr) return;
      charge(4 * std::size_t{a.numbers()->size()});
      return w.add_packed_float(7, a.numbers()->begin(), a.numbers()->end());
    case kInts:
      if (a.integers() == nullptr) return;
      charge(10 * std::size_t{a.integers()->size()});
      return w.add_packed_int64(8, a.integers()->begin(), a.integers()->end());
    case kStrings: return add_names(w, 9, a.texts());
    case kTensors: return add_list(w, 10, a.tensors(), [&](Writer& t, const file::Tensor& item) { add_tensor(t, item); });
    case kGraphs: return add_list(w, 11, a.graphs(), [&](Writer& g, const file::Graph& item) { add_graph(g, item); });
    default: fail(ErrorCode::invalid_model, "attribute '{}' has the unknown kind {}", text(a.name()), a.kind());
  }
}

void Converter::add_attribute(Writer& w, const file::Attribute& a) {
  charge(16);
  add_text(w, 1, a.name());
  w.add_enum(20, a.kind());
  add_value(w, a);
}

void Converter::add_node(Writer& w, const file::Node& n) {
  if (n.kind() != 0) {
    fail(ErrorCode::invalid_model, "node '{}' ({}) is a part of the graph that was compiled for a provider", text(n.name()),
         text(n.operator_name()));
  }
  add_names(w, 1, n.inputs());
  add_names(w, 2, n.outputs());
  add_text(w, 3, n.name());
  charge(text(n.operator_name()).size());
  w.add_bytes(4, text(n.operator_name()).data(), text(n.operator_name()).size());
  add_text(w, 7, n.domain());
  add_list(w, 5, n.attributes(), [&](Writer& a, const file::Attribute& item) { add_attribute(a, item); });
}

void Converter::add_graph(Writer& w, const file::Graph& g) {
  saved_ = saved_ || g.saved_optimizations() != nullptr;
  w.add_string(2, "graph");
  add_list(w, 1, g.nodes(), [&](Writer& n, const file::Node& item) { add_node(n, item); });
  add_list(w, 5, g.constants(), [&](Writer& t, const file::Tensor& item) { add_tensor(t, item); });
  add_list(w, 15, g.sparse_constants(), [&](Writer& t, const file::SparseTensor& item) { add_sparse(t, item); });
  std::map<std::string_view, const file::AnyType*> types;
  if (g.values() != nullptr) {
    for (const file::NamedType* v : *g.values()) types.emplace(text(v->name()), v->type());
  }
  std::map<std::string_view, bool> shown;
  const auto add = [&](std::uint32_t field, const List<flatbuffers::String>* names) {
    if (names == nullptr) return;
    for (const flatbuffers::String* name : *names) {
      const auto known = types.find(text(name));
      shown[text(name)] = true;
      charge(4);
      Writer v(w, field);
      add_named_type(v, name, known == types.end() ? nullptr : known->second);
    }
  };
  add(11, g.inputs());
  add(12, g.outputs());
  if (g.values() == nullptr) return;
  for (const file::NamedType* v : *g.values()) {
    if (v->type() == nullptr || text(v->name()).empty() || shown.contains(text(v->name()))) continue;
    charge(4);
    Writer info(w, 13);
    add_named_type(info, v->name(), v->type());
  }
}

std::string Converter::run(const file::Model& m) {
  std::string out;
  Writer w(out);
  w.add_int64(1, m.ir_version());
  add_text(w, 2, m.producer_name());
  add_text(w, 3, m.producer_version());
  add_text(w, 4, m.domain());
  w.add_int64(5, m.model_version());
  add_text(w, 6, m.doc());
  if (m.graph() == nullptr) fail(ErrorCode::invalid_model, "the .ort file contains no graph");
  {
    Writer graph(w, 7);
    add_graph(graph, *m.graph());
  }
  add_list(w, 8, m.operator_sets(), [&](Writer& o, const file::OperatorSet& set) {
    charge(12);
    add_text(o, 1, set.domain());
    o.add_int64(2, set.version());
  });
  add_list(w, 14, m.metadata(), [&](Writer& p, const file::TextPair& pair) {
    add_text(p, 1, pair.key());
    add_text(p, 2, pair.value());
  });
  return out;
}

void check_version(const file::Session& session) {
  const std::string_view version = text(session.format_version());
  int number = 0;
  const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), number);
  if (error != std::errc() || end != version.data() + version.size() || number < 1 || number > kNewestVersion) {
    fail(ErrorCode::invalid_model, "the .ort file has format version '{}'; versions 1 to {} are read", version.substr(0, 20),
         kNewestVersion);
  }
}

}  // namespace

bool is_ort_model(std::string_view data) { return data.size() > 8 && data.substr(4, 4) == file::SessionIdentifier(); }

OrtModel read_ort_model(std::span<const std::byte> data, std::shared_ptr<const void> owner) {
  if (data.size() >= FLATBUFFERS_MAX_BUFFER_SIZE) fail(ErrorCode::invalid_model, ".ort files have less than 2 GiB");
  if (reinterpret_cast<std::uintptr_t>(data.data()) % alignof(std::uint64_t) != 0) {
    const auto copy = std::make_shared<std::vector<std::byte>>(data.begin(), data.end());
    data = *copy;
    owner = copy;
  }
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(data.data());
  const auto tables = std::max(kAlwaysTables, static_cast<std::uint32_t>(data.size() / kBytesPerTable));
  flatbuffers::Verifier verifier(bytes, data.size(), kMaxDepth, tables);
  if (!file::VerifySessionBuffer(verifier)) {
    fail(ErrorCode::invalid_model, "the .ort file is damaged or incomplete ({} bytes in all)", data.size());
  }
  const file::Session& session = *file::GetSession(bytes);
  check_version(session);
  if (session.model() == nullptr) fail(ErrorCode::invalid_model, "the .ort file contains no model");
  Converter converter(data);
  OrtModel out;
  out.proto = converter.run(*session.model());
  out.content = std::make_unique<Content>(OwnedBytes{data, std::move(owner)});
  if (converter.has_saved_optimizations()) out.notice = "saved runtime optimisations are not needed and are omitted";
  return out;
}

}  // namespace sdx
