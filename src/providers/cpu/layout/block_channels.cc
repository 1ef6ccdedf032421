#include "providers/cpu/layout/block_channels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/words.h"
#include "graph/edit.h"
#include "ops/conv/conv_geometry.h"
#include "ops/conv/signatures.h"
#include "ops/norm/signatures.h"
#include "ops/tensor/signatures.h"

namespace sdx::cpu {
namespace {

constexpr int kDomainVersion = 1;  // of "sdx"

// Functions of one tensor (further inputs are constant scalars) that are computed lane by lane.
constexpr std::string_view kUnary =
    "Abs Celu Clip Elu Exp Gelu HardSigmoid HardSwish LeakyRelu Mish Neg Relu Selu Sigmoid Softplus Softsign Swish Tanh";
constexpr std::string_view kBinary = "Add Div Max Min Mul PRelu Sub";

bool is_gelu(const Node& n) { return n.domain == "com.microsoft" && (n.op_type == "QuickGelu" || n.op_type == "Gelu"); }

class Blocker {
 public:
  Blocker(Graph& graph, std::int64_t block) : g_(graph), block_(block), readers_(graph), twin_(graph.values().size(), kNoValue) {}

  bool run() {
    const std::size_t count = g_.nodes().size();
    for (NodeId id = 0; id < count; ++id) visit(id);
    if (made_.empty()) return false;
    // Whoever still reads a plain form gets it under its old name.
    const Readers readers(g_);
    for (const ValueId v : made_) {
      if (!readers.is_read(v)) continue;
      add_node(g_, own_node("UnblockChannels", v, twin_[v], attributes_of({{"channels", channels(v)}})), v);
    }
    return true;
  }

 private:
  Node own_node(const std::string& op, ValueId of, ValueId input, Attributes attributes) const {
    return make_node(g_.value(of).name + "/" + op, op, kDomainVersion, {input}, std::move(attributes), "sdx");
  }

  const SymShape* shape(ValueId v) const {
    if (v == kNoValue) return nullptr;
    const Type& t = g_.value(v).type;
    return t.is_tensor() && t.elem == DataType::float32 && t.shape ? &*t.shape : nullptr;
  }
  // [N, C, H, W] in float32 with C known: values that can be blocked.
  bool is_picture(ValueId v) const {
    const SymShape* s = shape(v);
    return s != nullptr && s->size() == 4 && (*s)[1].is_const() && (*s)[1].value() > 0;
  }
  std::int64_t channels(ValueId v) const { return (*shape(v))[1].value(); }
  bool one_pixel(ValueId v) const { return is_const((*shape(v))[2], 1) && is_const((*shape(v))[3], 1); }
  bool has_twin(ValueId v) const { return v != kNoValue && v < twin_.size() && twin_[v] != kNoValue; }
  ValueId new_value(ValueId like) {
    const SymShape& s = *shape(like);
    SymShape blocked{s[0], Dim((channels(like) + block_ - 1) / block_), s[2], s[3], Dim(block_)};
    const ValueId v = g_.add_value(g_.value(like).name + "_blocked", Type::tensor(DataType::float32, std::move(blocked)));
    twin_.resize(g_.values().size(), kNoValue);
    return v;
  }

  // The blocked form of a picture, made where it is not there yet.
  ValueId blocked(ValueId v) {
    if (twin_[v] == kNoValue) {
      const ValueId made = new_value(v);
      twin_[v] = add_node(g_, own_node("BlockChannels", v, v, attributes_of({{"block", block_}})), made);
    }
    return twin_[v];
  }

  // Makes the node give the blocked form of this result.
  void convert(NodeId id, std::size_t output = 0) {
    const ValueId v = g_.node(id).outputs[output];
    const ValueId made = new_value(v);
    Node& n = g_.node(id);
    if (n.name.empty()) n.name = g_.value(v).name;
    n.outputs[output] = made;
    g_.value(made).producer = id;
    g_.value(v).producer = kNoNode;
    twin_[v] = made;
    made_.push_back(v);
  }

  void own(NodeId id, std::string op) {
    Node& n = g_.node(id);
    n.op_type = std::move(op);
    n.domain = "sdx";
    n.version = kDomainVersion;
  }

  bool has_one_result(const Node& n) const {
    if (n.removed || n.inputs.empty() || !n.subgraphs.empty() || n.outputs.empty() || n.outputs[0] == kNoValue) return false;
    for (std::size_t i = 1; i < n.outputs.size(); ++i) {
      if (n.outputs[i] != kNoValue) return false;
    }
    return is_picture(n.outputs[0]);
  }

  // --- convolutions ----------------------------------------------------------------------------------------------------------

  bool is_conv(const Node& n) const {
    if (!has_one_result(n)) return false;
    const bool fused = n.domain == "com.microsoft" && n.op_type == "FusedConv";
    if ((!fused && !(n.domain.empty() && n.op_type == "Conv")) || ops::crops(n.attributes)) return false;
    const Tensor* w = constant_input(g_, n, 1);
    if (w == nullptr || w->dtype() != DataType::float32 || w->rank() != 4 || w->size() == 0 || !is_picture(n.inputs[0]))
      return false;
    if (n.inputs.size() > 2 && n.inputs[2] != kNoValue) {
      const Tensor* bias = constant_of(g_, n.inputs[2]);
      if (bias == nullptr || bias->dtype() != DataType::float32) return false;
    }
    const std::int64_t group = ops::group_of(n.attributes);
    const std::int64_t in = w->dim(1) * group, out = w->dim(0);
    if (group < 1 || out % group != 0 || channels(n.inputs[0]) != in || channels(n.outputs[0]) != out || out < block_)
      return false;
    // One pixel: a product of matrices, which has kernels of its own.
    if (one_pixel(n.inputs[0]) && one_pixel(n.outputs[0])) return false;
    return group == 1 || together(n) > 0 || is_depthwise(n) || is_pointwise(n);
  }

  // The number of neighbouring groups that fill blocks; 0: products with the zeros between them would cost more than blocks gain.
  // Products of four or eight rows use a quarter of the multiply-adds, and patches are gathered for each group.
  std::int64_t together(const Node& n) const {
    const Shape& w = constant_of(g_, n.inputs[1])->shape();
    const std::int64_t group = ops::group_of(n.attributes), in = w[1], out = w[0] / group;
    if (in % block_ == 0 && out % block_ == 0) return 1;
    if (is_depthwise(n) || is_pointwise(n)) return 0;
    for (const std::int64_t m : {2, 4}) {
      if (group % m == 0 && m * in % block_ == 0 && m * out % block_ == 0) return m;
    }
    return 0;
  }

  // Weights of this many groups as those of one, with zeros between them.
  ValueId joined(ValueId v, std::int64_t group, std::int64_t m) {
    const Tensor& t = *constant_of(g_, v);
    const Shape& w = t.shape();
    Tensor all(DataType::float32, {w[0], m * w[1], w[2], w[3]});
    auto* to = static_cast<float*>(all.mutable_data());
    std::fill(to, to + all.size(), 0.0F);
    const std::int64_t run = w[1] * w[2] * w[3], each = w[0] / group;
    for (std::int64_t row = 0; row < w[0]; ++row) {
      std::memcpy(to + (row * m + row / each % m) * run, static_cast<const char*>(t.data()) + row * run * 4,
                  static_cast<std::size_t>(run) * sizeof(float));
    }
    const ValueId made = g_.add_constant(g_.value(v).name + "_joined", std::move(all));
    twin_.resize(g_.values().size(), kNoValue);
    return made;
  }

  // Whether blocks gain more than the conversion to them and back costs, about half a cycle for each element that is read and
  // written. Compared with products of gathered patches, they save a fifth of the multiply-adds' time, and most of it if groups
  // are small.
  bool worth_the_way(const Node& n) const {
    const Shape& w = constant_of(g_, n.inputs[1])->shape();
    const std::int64_t group = ops::group_of(n.attributes), in = w[1] * group;
    if (w[2] * w[3] == 1) return false;
    const auto window = ops::parse<ops::WindowFields>(n);
    // Plain rows shorter than a vector leave most of it unused, and taps that lie apart are done one by one.
    const Dim& width = (*shape(n.outputs[0]))[3];
    const bool narrow = width.is_const() && width.value() < block_;
    if (is_depthwise(n)) return in % block_ == 0 && (narrow || above_one(window.dilations));
    std::int64_t inputs = group == 1 && in < block_ ? 0 : in;
    for (const std::int64_t v : window.strides) inputs *= std::clamp<std::int64_t>(v, 1, 64);
    return w[1] * w[2] * w[3] * w[0] >= (group > 1 ? 16 : 64) * (inputs + w[0]);
  }

  bool is_depthwise(const Node& n) const {
    const Shape& w = constant_of(g_, n.inputs[1])->shape();
    return w[1] == 1 && ops::group_of(n.attributes) == w[0];
  }
  // Output pixels are input pixels.
  bool is_pointwise(const Node& n) const {
    const Shape& w = constant_of(g_, n.inputs[1])->shape();
    const ops::IntList pads = ops::parse<ops::WindowFields>(n).pads;
    return w[2] == 1 && w[3] == 1 && !is_strided(n) &&
           std::all_of(pads.begin(), pads.end(), [](std::int64_t p) { return p == 0; });
  }

  // Somebody who can take the blocked form.
  bool has_taker(ValueId v) const {
    return std::ranges::any_of(readers_.of(v), [&](NodeId id) {
      const Node& n = g_.node(id);
      if (is_conv(n) || match_shuffle(id) || (n.domain.empty() && n.op_type == "Split")) return true;
      if (is_gelu(n)) return has_one_result(n) && has_taker(n.outputs[0]);
      if (!n.domain.empty() || !has_one_result(n)) return false;
      return n.op_type == "MaxPool" || n.op_type == "AveragePool" || n.op_type == "GlobalAveragePool" || n.op_type == "Concat" ||
             n.op_type == "BatchNormalization" || n.op_type == "LRN" || has_word(kUnary, n.op_type) ||
             has_word(kBinary, n.op_type);
    });
  }

  void visit_conv(NodeId id) {
    const Node& n = g_.node(id);
    const ValueId x = n.inputs[0], y = n.outputs[0];
    const bool few = channels(x) < block_ && ops::group_of(n.attributes) == 1 && !has_twin(x);
    if (!has_twin(x) && !has_taker(y) && !worth_the_way(n)) return;
    const ValueId z = input_of(n, 3);
    if (z != kNoValue && (!is_picture(z) || channels(z) != channels(y))) return;
    const ValueId from = few ? x : blocked(x);
    const ValueId sum = z != kNoValue ? blocked(z) : kNoValue;
    const std::int64_t m = together(g_.node(id)), group = ops::group_of(g_.node(id).attributes);
    const ValueId weights = m > 1 ? joined(g_.node(id).inputs[1], group, m) : g_.node(id).inputs[1];
    Node& changed = g_.node(id);
    changed.inputs[0] = from;
    changed.inputs[1] = weights;
    if (m > 1) {
      changed.attributes.set("group", group / m);
      changed.attributes.set("joined", m);
    }
    if (sum != kNoValue) changed.inputs[3] = sum;
    changed.attributes.set("block", block_);
    own(id, "BlockedConv");
    convert(id);
  }

  // --- shuffled channels -----------------------------------------------------------------------------------------------------

  // The pattern of ShuffleNet: Reshape to [N, groups, C / groups, H, W], Transpose of axes 1 and 2, Reshape back, a depthwise
  // convolution (or none), and a pointwise one, without further readers between them.
  struct Shuffle {
    NodeId moves[3];
    NodeId depthwise;  // kNoNode: none
    NodeId pointwise;
    std::int64_t groups;
  };

  bool reads_first(NodeId id, ValueId v) const { return id != kNoNode && g_.node(id).inputs[0] == v; }
  bool is_step(NodeId id, std::string_view op) const {
    const Node& n = g_.node(id);
    return is_op(n, op) && n.outputs.size() == 1 && !n.inputs.empty();
  }

  std::optional<Shuffle> match_shuffle(NodeId id) const {
    if (!is_step(id, "Reshape") || !is_picture(g_.node(id).inputs[0])) return std::nullopt;
    const SymShape& x = *shape(g_.node(id).inputs[0]);
    const ValueId parts = g_.node(id).outputs[0];
    const SymShape* split = shape(parts);
    if (split == nullptr || split->size() != 5 || !(*split)[1].is_const() || !(*split)[2].is_const()) return std::nullopt;
    Shuffle s{{id, kNoNode, kNoNode}, kNoNode, kNoNode, (*split)[1].value()};
    const bool same = (*split)[0] == x[0] && (*split)[3] == x[2] && (*split)[4] == x[3];
    if (!same || s.groups < 1 || s.groups * (*split)[2].value() != x[1].value()) return std::nullopt;
    s.moves[1] = readers_.only(parts);
    if (!reads_first(s.moves[1], parts) || !is_step(s.moves[1], "Transpose")) return std::nullopt;
    if (!ops::parse<ops::TransposeAttrs>(g_.node(s.moves[1])).is({0, 2, 1, 3, 4})) return std::nullopt;
    const ValueId turned = g_.node(s.moves[1]).outputs[0];
    s.moves[2] = readers_.only(turned);
    if (!reads_first(s.moves[2], turned) || !is_step(s.moves[2], "Reshape")) return std::nullopt;
    ValueId v = g_.node(s.moves[2]).outputs[0];
    if (!is_picture(v) || *shape(v) != x) return std::nullopt;
    s.pointwise = readers_.only(v);
    if (reads_first(s.pointwise, v) && is_conv(g_.node(s.pointwise)) && is_depthwise(g_.node(s.pointwise))) {
      s.depthwise = s.pointwise;
      if (g_.node(s.depthwise).inputs.size() > 3) return std::nullopt;
      v = g_.node(s.depthwise).outputs[0];
      s.pointwise = readers_.only(v);
    }
    if (!reads_first(s.pointwise, v)) return std::nullopt;
    const Node& last = g_.node(s.pointwise);
    if (!is_conv(last) || !is_pointwise(last) || is_depthwise(last)) return std::nullopt;
    const ValueId z = input_of(last, 3);
    if (z != kNoValue && (!is_picture(z) || channels(z) != channels(last.outputs[0]))) return std::nullopt;
    return s;
  }

  // Rows of a constant as they were before the shuffle.
  ValueId unshuffled(ValueId v, std::int64_t groups) {
    const Tensor& t = *constant_of(g_, v);
    const std::int64_t rows = t.dim(0), each = rows / groups;
    const auto bytes = static_cast<std::size_t>(t.size() / rows) * sizeof(float);
    Tensor out(DataType::float32, t.shape());
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto to = static_cast<std::size_t>(i % groups * each + i / groups);
      std::memcpy(static_cast<char*>(out.mutable_data()) + to * bytes,
                  static_cast<const char*>(t.data()) + static_cast<std::size_t>(i) * bytes, bytes);
    }
    const ValueId made = g_.add_constant(g_.value(v).name + "_unshuffled", std::move(out));
    twin_.resize(g_.values().size(), kNoValue);
    return made;
  }

  // The depthwise convolution works on the channels as they are, and the pointwise one fetches them in the new order.
  void visit_shuffle(NodeId id) {
    const ValueId x = g_.node(id).inputs[0];
    if (x == kNoValue || !has_twin(x)) return;
    const std::optional<Shuffle> s = match_shuffle(id);
    if (!s) return;
    const NodeId first = s->depthwise != kNoNode ? s->depthwise : s->pointwise;
    g_.node(first).inputs[0] = x;
    if (s->depthwise != kNoNode) {
      for (std::size_t i = 1; i < g_.node(first).inputs.size(); ++i) {
        const ValueId v = g_.node(first).inputs[i];
        const ValueId made = v == kNoValue ? v : unshuffled(v, s->groups);
        g_.node(first).inputs[i] = made;
      }
    }
    g_.node(s->pointwise).attributes.set("shuffle", s->groups);
    for (const NodeId move : s->moves) g_.remove_node(move);
  }

  // --- what follows ----------------------------------------------------------------------------------------------------------

  static bool above_one(const ops::IntList& list) {
    return std::any_of(list.begin(), list.end(), [](std::int64_t v) { return v > 1; });
  }
  static bool is_strided(const Node& n) { return above_one(ops::parse<ops::WindowFields>(n).strides); }

  void visit_pool(NodeId id) {
    const Node& n = g_.node(id);
    // Averages over windows with wide strides, which plain channels gather element by element, gain more by vectors of channels
    // than the way in and back costs.
    const ops::IntList strides = ops::parse<ops::WindowFields>(n).strides;
    const bool strided = n.op_type == "AveragePool" && channels(n.inputs[0]) >= block_ &&
                         std::any_of(strides.begin(), strides.end(), [](std::int64_t v) { return v > 2; });
    if (!has_twin(n.inputs[0]) && !strided) return;
    if (n.op_type == "AveragePool" && ops::may_average_nothing(ops::read_window_attrs(n.attributes, 2))) return;
    const ValueId from = blocked(n.inputs[0]);
    g_.node(id).inputs[0] = from;
    own(id, "Blocked" + g_.node(id).op_type);
    convert(id);
  }

  // --- normalisations --------------------------------------------------------------------------------------------------------

  void visit_lrn(NodeId id) {
    const ValueId x = g_.node(id).inputs[0];
    if (!has_twin(x)) return;
    Node& n = g_.node(id);
    n.attributes.set("channels", channels(x));
    n.inputs[0] = twin_[x];
    own(id, "BlockedLRN");
    convert(id);
  }

  // A factor and a term for each channel.
  struct Affine {
    std::vector<double> factor, term;
  };

  // Reads `count` float32 values of a constant, whatever its shape.
  std::optional<std::vector<float>> values(ValueId v, std::int64_t count) const {
    const Tensor* t = constant_of(g_, v);
    if (t == nullptr || t->dtype() != DataType::float32 || t->size() != count) return std::nullopt;
    std::vector<float> out(static_cast<std::size_t>(count));
    std::memcpy(out.data(), t->data(), out.size() * sizeof(float));
    return out;
  }

  std::optional<Affine> batch_norm(const Node& n, std::int64_t count) const {
    const auto attr = ops::parse<ops::BatchNormAttrs>(n);
    if (n.inputs.size() != 5 || attr.training_mode || n.version < 7) return std::nullopt;
    const auto scale = values(n.inputs[1], count), bias = values(n.inputs[2], count);
    const auto mean = values(n.inputs[3], count), variance = values(n.inputs[4], count);
    if (!scale || !bias || !mean || !variance) return std::nullopt;
    const double epsilon = static_cast<double>(attr.epsilon);
    Affine a;
    for (std::size_t i = 0; i < scale->size(); ++i) {
      const double factor = static_cast<double>((*scale)[i]) / std::sqrt(static_cast<double>((*variance)[i]) + epsilon);
      a.factor.push_back(factor);
      a.term.push_back(static_cast<double>((*bias)[i]) - factor * static_cast<double>((*mean)[i]));
    }
    return a;
  }

  // The only node that reads v, or kNoNode if there are several, or if the caller or a subgraph reads it, too.
  NodeId only_reader(ValueId v) const {
    const NodeId reader = readers_.only(v);
    return reader != kNoNode && has_one_result(g_.node(reader)) && g_.node(reader).domain.empty() ? reader : kNoNode;
  }

  // Multiplications and additions per channel that follow, and Relu at last, are done in the same step. Returns the result.
  ValueId absorb(ValueId v, std::int64_t count, Affine& a, bool& relu) {
    for (NodeId next = only_reader(v); next != kNoNode && !relu; next = only_reader(v)) {
      const Node& n = g_.node(next);
      relu = n.op_type == "Relu";
      if (!relu) {
        if ((n.op_type != "Mul" && n.op_type != "Add") || n.version < 7 || n.inputs.size() != 2) break;
        const ValueId other = n.inputs[n.inputs[0] == v ? 1 : 0];
        if (operand(other, count) != Operand::constant) break;
        const std::vector<float> more = *values(other, count);
        for (std::size_t i = 0; i < more.size(); ++i) {
          const auto value = static_cast<double>(more[i]);
          if (n.op_type == "Mul") a.factor[i] *= value;
          a.term[i] = n.op_type == "Mul" ? a.term[i] * value : a.term[i] + value;
        }
      }
      v = n.outputs[0];
      g_.remove_node(next);
    }
    return v;
  }

  ValueId add_constant(const std::string& name, const std::vector<double>& from, Shape extents) {
    Tensor t(DataType::float32, std::move(extents));
    std::transform(from.begin(), from.end(), static_cast<float*>(t.mutable_data()),
                   [](double x) { return static_cast<float>(x); });
    const ValueId made = g_.add_constant(name, std::move(t));
    twin_.resize(g_.values().size(), kNoValue);
    return made;
  }

  // A normalisation that no convolution before it could take in becomes a depthwise convolution of one tap.
  void visit_batch_norm(NodeId id) {
    const ValueId x = g_.node(id).inputs[0];
    if (!has_twin(x)) return;
    const std::int64_t count = channels(x);
    std::optional<Affine> a = batch_norm(g_.node(id), count);
    if (!a || count < 2) return;  // a group of one would be a plain convolution
    bool relu = false;
    const std::string name = g_.value(g_.node(id).outputs[0]).name;
    const ValueId result = absorb(g_.node(id).outputs[0], count, *a, relu);
    const ValueId w = add_constant(name + "_factor", a->factor, {count, 1, 1, 1});
    const ValueId b = add_constant(name + "_term", a->term, {count});
    Node& n = g_.node(id);
    if (n.name.empty()) n.name = name;
    n.inputs = {twin_[x], w, b};
    n.outputs = {result};
    n.attributes = {};
    n.attributes.set("group", count);
    n.attributes.set("block", block_);
    if (relu) n.attributes.set("activation", std::string("Relu"));
    own(id, "BlockedConv");
    convert(id);
  }

  void visit_unary(NodeId id) {
    const Node& n = g_.node(id);
    if (!has_twin(n.inputs[0])) return;
    for (std::size_t i = 1; i < n.inputs.size(); ++i) {
      if (n.inputs[i] != kNoValue && constant_of(g_, n.inputs[i]) == nullptr) return;
    }
    g_.node(id).inputs[0] = twin_[n.inputs[0]];
    convert(id);
  }

  // A constant with a value per channel, [C, 1, 1] or [1, C, 1, 1], in blocks.
  bool per_channel(const Tensor& t, std::int64_t count) const {
    const Shape& s = t.shape();
    if (t.dtype() != DataType::float32 || t.size() != count || (s.size() != 3 && s.size() != 4)) return false;
    return s[s.size() - 3] == count;
  }
  ValueId block_constant(ValueId v, std::int64_t count) {
    const Tensor& t = *constant_of(g_, v);
    const std::int64_t blocks = (count + block_ - 1) / block_;
    Tensor out(DataType::float32, {1, blocks, 1, 1, block_});
    auto* to = static_cast<float*>(out.mutable_data());
    std::fill(to, to + blocks * block_, 0.0F);
    std::memcpy(to, t.data(), static_cast<std::size_t>(count) * sizeof(float));
    const ValueId made = g_.add_constant(g_.value(v).name + "_blocked", std::move(out));
    twin_.resize(g_.values().size(), kNoValue);
    return made;
  }

  enum class Operand : std::uint8_t { no, blocked, scalar, constant, plain };
  Operand operand(ValueId v, std::int64_t count) const {
    if (v == kNoValue) return Operand::no;
    if (const Tensor* t = constant_of(g_, v)) {
      if (t->dtype() == DataType::float32 && t->size() == 1 && t->rank() <= 4) return Operand::scalar;
      return per_channel(*t, count) ? Operand::constant : Operand::no;
    }
    if (!is_picture(v) || channels(v) != count) return Operand::no;
    return has_twin(v) ? Operand::blocked : Operand::plain;
  }

  void visit_binary(NodeId id) {
    const Node& n = g_.node(id);
    if (n.inputs.size() != 2 || n.version < 7) return;
    if (!has_twin(n.inputs[0]) && !has_twin(n.inputs[1])) return;
    const std::int64_t count = channels(n.outputs[0]);
    std::array<Operand, 2> kinds{operand(n.inputs[0], count), operand(n.inputs[1], count)};
    if (kinds[0] == Operand::no || kinds[1] == Operand::no) return;
    const std::array<ValueId, 2> old{n.inputs[0], n.inputs[1]};
    for (std::size_t i = 0; i < 2; ++i) {
      ValueId v = old[i];
      if (kinds[i] == Operand::constant) v = block_constant(v, count);
      if (kinds[i] == Operand::blocked || kinds[i] == Operand::plain) v = blocked(v);
      g_.node(id).inputs[i] = v;
    }
    convert(id);
  }

  void visit_concat(NodeId id) {
    const Node& n = g_.node(id);
    const std::int64_t axis = ops::parse<ops::ConcatAttrs>(n).along();
    if (axis != 1 && axis != -3) return;
    std::size_t there = 0;
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      const ValueId v = n.inputs[i];
      if (!is_picture(v)) return;
      if (channels(v) % block_ != 0 && i + 1 < n.inputs.size()) return;
      there += has_twin(v) ? 1 : 0;
    }
    if (2 * there < n.inputs.size()) return;
    const std::vector<ValueId> old = n.inputs;
    for (std::size_t i = 0; i < old.size(); ++i) {
      const ValueId v = blocked(old[i]);
      g_.node(id).inputs[i] = v;
    }
    g_.node(id).attributes.set("axis", std::int64_t{1});
    convert(id);
  }

  // Along channels at the borders of blocks.
  void visit_split(NodeId id) {
    const Node& n = g_.node(id);
    const std::int64_t axis = ops::parse<ops::SplitAttrs>(n).axis;
    if ((axis != 1 && axis != -3) || !has_twin(n.inputs[0])) return;
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < n.outputs.size(); ++i) {
      if (!is_picture(n.outputs[i])) return;
      const std::int64_t size = channels(n.outputs[i]);
      if (size % block_ != 0 && i + 1 < n.outputs.size()) return;
      sizes.push_back((size + block_ - 1) / block_);
    }
    const bool by_input = n.version >= 13;
    const ValueId table = by_input ? g_.add_constant(g_.value(n.outputs[0]).name + "_sizes",
                                                     Tensor::of<std::int64_t>({static_cast<std::int64_t>(sizes.size())},
                                                                              std::span<const std::int64_t>(sizes)))
                                   : kNoValue;
    twin_.resize(g_.values().size(), kNoValue);
    Node& changed = g_.node(id);
    changed.inputs = {twin_[changed.inputs[0]]};
    if (by_input) changed.inputs.push_back(table);
    changed.attributes.erase("num_outputs");
    changed.attributes.set("axis", std::int64_t{1});
    if (!by_input) changed.attributes.set("split", sizes);
    for (std::size_t i = 0; i < changed.outputs.size(); ++i) convert(id, i);
  }

  void visit(NodeId id) {
    const Node& n = g_.node(id);
    if (!n.removed && n.domain.empty() && n.op_type == "Split" && !n.inputs.empty()) return visit_split(id);
    if (!n.removed && n.domain.empty() && n.op_type == "Reshape" && !n.inputs.empty()) return visit_shuffle(id);
    if (is_conv(n)) return visit_conv(id);
    if (!has_one_result(n)) return;
    if (n.domain.empty() && has_word(kBinary, n.op_type)) return visit_binary(id);
    if (!is_picture(n.inputs[0])) return;
    if (is_gelu(n)) return visit_unary(id);
    if (!n.domain.empty()) return;
    if (n.op_type == "MaxPool" || n.op_type == "AveragePool" || n.op_type == "GlobalAveragePool") return visit_pool(id);
    if (n.op_type == "Concat") return visit_concat(id);
    if (n.op_type == "BatchNormalization") return visit_batch_norm(id);
    if (n.op_type == "LRN") return visit_lrn(id);
    if (has_word(kUnary, n.op_type)) return visit_unary(id);
  }

  Graph& g_;
  std::int64_t block_;
  Readers readers_;            // before anything changed
  std::vector<ValueId> twin_;  // value -> its blocked form
  std::vector<ValueId> made_;  // values no longer computed in plain form
};

}  // namespace

bool block_channels(Graph& graph, std::int64_t block) { return Blocker(graph, block).run(); }

}  // namespace sdx::cpu
