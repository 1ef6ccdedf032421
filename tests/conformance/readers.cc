#include "conformance/readers.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "conformance/compare.h"
#include "ops/op.h"

namespace sdx::testing {
namespace {

constexpr int kNewestReaders = 21;  // where the model itself imports no ai.onnx

// How a reader's result comes from the output's value.
enum class Change : std::uint8_t { reshaped, twice, negated };

struct Reader {
  ValueId result = kNoValue;
  Change change = Change::reshaped;
  std::string name;  // of the model's output
};

class Appender {
 public:
  Appender(Model& model, Readers readers) : g_(model.graph), readers_(readers) {
    version_ = model.opsets.try_emplace("", kNewestReaders).first->second;
  }

  struct Output {
    std::string original;      // the output that is left of it, empty: none
    std::vector<Reader> seen;  // its readers
  };

  std::vector<Output> append() {
    const std::vector<ValueId> outputs = g_.outputs();
    const std::vector<std::string> names = g_.output_names();
    if (readers_ == Readers::alone) {
      for (std::size_t i = outputs.size(); i-- > 0;) g_.remove_output(i);
    }
    std::vector<Output> made;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      readers_of_ = {};
      read(outputs[i]);
      const bool unread = readers_of_.empty() && readers_ == Readers::alone;
      if (unread) g_.add_output(outputs[i], names[i]);
      for (Reader& r : readers_of_) {
        r.name = fmt::format("reader {} of {}", g_.outputs().size(), names[i]);
        g_.add_output(r.result, r.name);
      }
      made.push_back({readers_ == Readers::kept || unread ? names[i] : "", std::move(readers_of_)});
    }
    return made;
  }

  ValueId condition() const { return condition_; }

 private:
  // Adds the node where the operator takes such a value in this version; returns its result.
  std::optional<ValueId> add(const std::string& op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    Node n;
    n.op_type = op;
    n.version = version_;
    n.inputs = std::move(inputs);
    n.attributes = std::move(attributes);
    const ops::OpDef* def = ops::find(n);
    if (def == nullptr) return std::nullopt;
    const ValueId result = g_.add_value(op + "_reader", g_.value(n.inputs[0]).type);
    n.outputs = {result};
    try {
      ops::check_node(g_, n, *def);
    } catch (const Error&) {
      return std::nullopt;
    }
    g_.add_node(std::move(n));
    return result;
  }

  void note(std::optional<ValueId> result, Change change = Change::reshaped) {
    if (result) readers_of_.push_back({*result, change, ""});
  }

  ValueId ints(std::vector<std::int64_t> v) {
    return g_.add_constant("reader_axes", Tensor::of<std::int64_t>({static_cast<std::int64_t>(v.size())}, v));
  }

  void read(ValueId v) {
    const Type type = g_.value(v).type;
    if (!type.is_tensor() && type.kind != Type::Kind::sequence) return;
    branch(v);
    note(add("Identity", {v}));
    if (readers_of_.empty()) return;  // a type that this version does not even copy
    if (type.is_tensor()) views(v, type);
    if (type.is_tensor() && type.elem == DataType::float32) overwritten(v);
  }

  // A value that a subgraph hands on while a later node computes in its place.
  void overwritten(ValueId v) {
    const std::optional<ValueId> negative = add("Neg", {v});
    if (!negative) return;
    branch(*negative, Change::negated);
    note(add("Neg", {*negative}));
  }

  void views(ValueId v, const Type& type) {
    if (version_ >= 5) {
      const std::optional<ValueId> flat = add("Reshape", {v, ints({-1})});
      note(flat);
      if (flat) {
        Attributes axis;
        axis.set("axis", std::int64_t{0});
        note(add("Concat", {*flat, *flat}, axis), Change::twice);
      }
    }
    Attributes axes;
    if (version_ < 13) axes.set("axes", std::vector<std::int64_t>{0});
    const std::optional<ValueId> tall = version_ < 13 ? add("Unsqueeze", {v}, axes) : add("Unsqueeze", {v, ints({0})});
    note(tall);
    if (!tall || !type.shape || type.shape->empty()) return;
    g_.value(*tall).type = Type::tensor(type.elem);
    std::vector<std::int64_t> order(type.shape->size() + 1);
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[0], order[1]);
    Attributes perm;
    perm.set("perm", order);
    note(add("Transpose", {*tall}, perm));
  }

  // If(condition) with branches that hand the captured value through.
  void branch(ValueId v, Change change = Change::reshaped) {
    if (condition_ == kNoValue) condition_ = g_.add_input("reader condition", Type::tensor(DataType::boolean, SymShape{}));
    Node n;
    n.op_type = "If";
    n.version = version_;
    n.inputs = {condition_};
    for (const char* name : {"then_branch", "else_branch"}) {
      auto body = std::make_unique<Graph>();
      body->name = name;
      Node identity;
      identity.op_type = "Identity";
      identity.version = version_;
      identity.inputs = {body->add_input(g_.value(v).name, g_.value(v).type)};
      identity.outputs = {body->add_value("handed on", g_.value(v).type)};
      body->add_output(identity.outputs[0]);
      const ops::OpDef* def = ops::find(identity);
      if (def == nullptr) return;
      try {
        ops::check_node(*body, identity, *def);
      } catch (const Error&) {
        return;
      }
      body->add_node(std::move(identity));
      Subgraph s;
      s.attribute = name;
      s.graph = std::move(body);
      s.captures = {v};
      n.subgraphs.push_back(std::move(s));
    }
    n.outputs = {g_.add_value("If_reader", g_.value(v).type)};
    const ValueId result = n.outputs[0];
    g_.add_node(std::move(n));
    note(result, change);
  }

  Graph& g_;
  Readers readers_;
  int version_ = 0;
  ValueId condition_ = kNoValue;
  std::vector<Reader> readers_of_;
};

Tensor twice(const Tensor& t) {
  Tensor out(t.dtype(), {2 * t.size()});
  if (t.dtype() == DataType::string) {
    const auto from = t.values<std::string>();
    std::copy(from.begin(), from.end(), out.mutable_values<std::string>().begin());
    std::copy(from.begin(), from.end(), out.mutable_values<std::string>().begin() + t.size());
    return out;
  }
  auto* to = static_cast<char*>(out.mutable_data());
  for (int k = 0; k < 2; ++k)
    std::copy_n(static_cast<const char*>(t.data()), t.bytes(), to + static_cast<std::size_t>(k) * t.bytes());
  return out;
}

Tensor negated(const Tensor& t) {
  Tensor out = t.clone();
  for (float& x : out.mutable_values<float>()) x = -x;
  return out;
}

// "" when the reader saw `own`.
std::string disagreement(const Value& own, const Value& read, Change change) {
  if (!own.is_tensor()) return difference(read, own, {0, 0});
  if (!read.is_tensor()) return fmt::format("{} instead of {}", read.type_string(), own.type_string());
  const bool odd = change == Change::twice && own.tensor().size() % 2 != 0 && is_sub_byte(own.tensor().dtype());
  if (odd) return "";  // halves that begin within a byte
  Tensor want = change == Change::twice ? twice(own.tensor()) : change == Change::negated ? negated(own.tensor()) : own.tensor();
  if (want.size() != read.tensor().size()) return fmt::format("{} elements instead of {}", read.tensor().size(), want.size());
  return difference(read, want.reshaped(read.tensor().shape()), {0, 0});
}

}  // namespace

std::vector<Value> run_with_readers(Model model, std::vector<Value> inputs, Readers readers, const RunModel& run) {
  NamedValues named;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].empty()) named.add(model.graph.value(model.graph.inputs()[i]).name, inputs[i]);
  }
  Appender appender(model, readers);
  const std::vector<Appender::Output> outputs = appender.append();
  model.graph.compact();
  if (appender.condition() != kNoValue) named.add(model.graph.value(appender.condition()).name, Tensor::scalar<bool>(true));
  const NamedValues results = run(model, named);
  std::vector<Value> own;
  for (const Appender::Output& output : outputs) {
    // Where the output itself is gone, its first reader is believed, and compared with the recorded answer as the output would
    // be.
    Value value = results.at(output.original.empty() ? output.seen.at(0).name : output.original);
    for (const Reader& r : output.seen) {
      const std::string d = disagreement(value, results.at(r.name), r.change);
      if (!d.empty()) fail(ErrorCode::runtime_failure, "'{}' saw something else than the output: {}", r.name, d);
    }
    own.push_back(std::move(value));
  }
  return own;
}

}  // namespace sdx::testing
