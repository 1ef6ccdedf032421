#include "dropin/model_file.h"

namespace sdx::dropin {
namespace {

// Fields of onnx.proto that are read here.
namespace model_field {
constexpr std::uint32_t kIrVersion = 1, kProducer = 2, kProducerVersion = 3, kDomain = 4, kVersion = 5, kDoc = 6, kGraph = 7,
                        kMetadata = 14;
}
namespace graph_field {
constexpr std::uint32_t kNode = 1, kName = 2, kInitializer = 5, kDoc = 10, kInput = 11, kOutput = 12;
}

struct Field {
  std::uint32_t number = 0;
  std::uint32_t wire = 0;
  std::uint64_t value = 0;  // of numbers
  std::string_view bytes;   // of texts and messages
};

// Fields one after the other. `broken` after the first that is none.
class Walk {
 public:
  explicit Walk(std::string_view bytes) : rest_(bytes) {}
  bool broken() const { return broken_; }

  bool next(Field& field) {
    if (rest_.empty() || broken_) return false;
    std::uint64_t tag = 0;
    if (!number(tag) || (tag >> 3) == 0 || (tag >> 3) > 0x1FFFFFFF) return fail_here();
    field = {static_cast<std::uint32_t>(tag >> 3), static_cast<std::uint32_t>(tag & 7), 0, {}};
    switch (field.wire) {
      case 0:
        if (!number(field.value)) return fail_here();
        break;
      case 1: return take(8, field);
      case 2:
        if (!number(field.value)) return fail_here();
        return take(field.value, field);
      case 5: return take(4, field);
      default: return fail_here();
    }
    return true;
  }

 private:
  bool fail_here() {
    broken_ = true;
    return false;
  }
  bool number(std::uint64_t& out) {
    out = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      out |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool take(std::uint64_t size, Field& field) {
    if (size > rest_.size()) return fail_here();
    field.bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
  bool broken_ = false;
};

std::pair<std::string, std::string> entry_of(std::string_view bytes) {
  std::pair<std::string, std::string> entry;
  Walk walk(bytes);
  for (Field f; walk.next(f);) {
    if (f.number == 1) entry.first = f.bytes;
    if (f.number == 2) entry.second = f.bytes;
  }
  return entry;
}

void read_tensor_type(std::string_view bytes, InputFacts& facts) {
  Walk type(bytes);
  for (Field f; type.next(f);) {
    if (f.number != 2 || f.wire != 2) continue;
    facts.has_shape = true;
    Walk shape(f.bytes);
    for (Field d; shape.next(d);) {
      if (d.number != 1 || d.wire != 2) continue;
      facts.extents.emplace_back();
      facts.numbers.push_back(-1);
      Walk extent(d.bytes);
      for (Field e; extent.next(e);) {
        if (e.number == 1 && e.wire == 0) facts.numbers.back() = static_cast<std::int64_t>(e.value);
        if (e.number == 2 && e.wire == 2) facts.extents.back().first = e.bytes;
        if (e.number == 3 && e.wire == 2) facts.extents.back().second = e.bytes;
      }
    }
  }
}

void read_value(std::string_view bytes, ModelFacts& model) {
  std::string name;
  InputFacts facts;
  Walk walk(bytes);
  for (Field f; walk.next(f);) {
    if (f.number == 1 && f.wire == 2) name = f.bytes;
    if (f.number != 2 || f.wire != 2) continue;
    Walk type(f.bytes);
    for (Field t; type.next(t);) {
      if (t.number == 6 && t.wire == 2) facts.denotation = t.bytes;
      if ((t.number == 1 || t.number == 8) && t.wire == 2) read_tensor_type(t.bytes, facts);
      if (t.number == 8) facts.sparse = true;
    }
  }
  model.values.insert_or_assign(std::move(name), std::move(facts));
}

std::string_view name_of(std::string_view value_info) {
  Walk walk(value_info);
  for (Field f; walk.next(f);) {
    if (f.number == 1 && f.wire == 2) return f.bytes;
  }
  return {};
}

using Names = std::set<std::string, std::less<>>;

// Takes away the names that a graph's nodes, their subgraphs and its outputs refer to, until none is left: in most models the
// first nodes read all inputs. Where it is nested too deeply to tell, all count as read.
void drop_read(std::string_view graph, Names& unread, int depth) {
  using namespace graph_field;
  if (depth == 0) return unread.clear();
  const auto drop = [&](std::string_view name) {
    if (const auto at = unread.find(name); at != unread.end()) unread.erase(at);
  };
  constexpr std::uint32_t kInputOfNode = 1, kAttribute = 5, kGraph = 6, kGraphs = 11;
  Walk walk(graph);
  for (Field f; !unread.empty() && walk.next(f);) {
    if (f.wire != 2) continue;
    if (f.number == kOutput) drop(name_of(f.bytes));
    if (f.number != kNode) continue;
    Walk node(f.bytes);
    for (Field n; node.next(n);) {
      if (n.wire != 2) continue;
      if (n.number == kInputOfNode) drop(n.bytes);
      if (n.number != kAttribute) continue;
      Walk attribute(n.bytes);
      for (Field a; attribute.next(a);) {
        const bool nested = a.wire == 2 && (a.number == kGraph || a.number == kGraphs);
        if (nested) drop_read(a.bytes, unread, depth - 1);
      }
    }
  }
}

bool read_graph(std::string_view bytes, ModelFacts& model) {
  using namespace graph_field;
  constexpr int kDepth = 32;
  Walk walk(bytes);
  for (Field f; walk.next(f);) {
    if (f.wire != 2) continue;
    if (f.number == kName) model.metadata.graph_name = f.bytes;
    if (f.number == kDoc) model.metadata.graph_description = f.bytes;
    if (f.number == kInput || f.number == kOutput) read_value(f.bytes, model);
    if (f.number == kInput) model.unread.emplace(name_of(f.bytes));
  }
  drop_read(bytes, model.unread, kDepth);
  return !walk.broken();
}

}  // namespace

std::optional<ModelFacts> read_facts(std::string_view bytes) {
  using namespace model_field;
  ModelFacts facts;
  bool graph = false;
  Walk walk(bytes);
  for (Field f; walk.next(f);) {
    if (f.number == kIrVersion && f.wire == 0) facts.ir_version = static_cast<std::int64_t>(f.value);
    if (f.number == kVersion && f.wire == 0) facts.metadata.version = static_cast<std::int64_t>(f.value);
    if (f.wire != 2) continue;
    if (f.number == kProducer) facts.metadata.producer = f.bytes;
    if (f.number == kProducerVersion) facts.producer_version = f.bytes;
    if (f.number == kDomain) facts.metadata.domain = f.bytes;
    if (f.number == kDoc) facts.metadata.description = f.bytes;
    if (f.number == kMetadata) facts.metadata.custom.push_back(entry_of(f.bytes));
    if (f.number == kGraph) {
      graph = true;
      if (!read_graph(f.bytes, facts)) return std::nullopt;
    }
  }
  if (walk.broken() || !graph) return std::nullopt;
  return facts;
}

std::map<std::string, bool, std::less<>> weights_of(std::string_view model) {
  std::map<std::string, bool, std::less<>> weights;
  Walk walk(model);
  for (Field f; walk.next(f);) {
    if (f.number != model_field::kGraph || f.wire != 2) continue;
    Walk graph(f.bytes);
    for (Field g; graph.next(g);) {
      if (g.number != graph_field::kInitializer || g.wire != 2) continue;
      constexpr std::uint32_t kNameOfTensor = 8, kLocationOfData = 14;
      std::string name;
      bool external = false;
      Walk tensor(g.bytes);
      for (Field t; tensor.next(t);) {
        if (t.number == kNameOfTensor && t.wire == 2) name = t.bytes;
        if (t.number == kLocationOfData && t.wire == 0) external = t.value == 1;
      }
      weights.insert_or_assign(std::move(name), external);
    }
  }
  return weights;
}

void add_extents(const ModelFacts& facts, std::string_view denotation, std::int64_t extent,
                 std::vector<session::FixedExtent>& to) {
  for (const auto& [name, input] : facts.values) {
    for (std::size_t axis = 0; axis < input.extents.size(); ++axis) {
      if (input.extents[axis].second == denotation && input.numbers[axis] < 0) to.push_back({name, axis, extent});
    }
  }
}

}  // namespace sdx::dropin
