#pragma once
// Gradients of operators, as nodes. See docs/add-an-op.md.

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace sdx::ops {

class GradientContext;

// The values that a node reads: its inputs, then the captures of its subgraphs, in order. Gradients of nodes are given and
// requested in this order.
std::vector<ValueId> operands(const Node& node);

// A value of the graph, for writing formulas: y * (1 - y) adds the nodes that compute it. Null when it stands for nothing.
struct Expr {
  GradientContext* context = nullptr;
  ValueId id = kNoValue;
  explicit operator bool() const { return id != kNoValue; }
  // The context to which nodes that read it are added. Throws Error(internal) if there is none: the value is an input that the
  // node leaves out.
  GradientContext& here() const;
};

using EmittedAttributes = std::initializer_list<std::pair<const char*, AttributeValue>>;

// The interface of a gradient function to its node: values to read, and a place for new nodes. Emitted nodes are ai.onnx of one
// opset version, whatever the model imports.
class GradientContext {
 public:
  // `of_outputs`: for each output, the value that holds its gradient, or kNoValue. `wanted`: for each operand, whether its
  // gradient is needed.
  GradientContext(Graph& graph, NodeId id, std::vector<ValueId> of_outputs, std::vector<bool> wanted, bool fused = false);
  // For writing formulas only, with elements of type `elem`.
  GradientContext(Graph& graph, DataType elem) : graph_(graph), elem_(elem) {}

  Graph& graph() { return graph_; }
  NodeId id() const { return id_; }
  Expr expr(ValueId v) { return {this, v}; }

  const Node& node() const { return node_; }  // as it was when the context was made
  const Attributes& attrs() const { return node_.attributes; }
  int version() const { return node_.version; }
  std::size_t num_inputs() const { return node_.inputs.size(); }
  bool has_input(std::size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != kNoValue; }
  bool wants(std::size_t i) const { return i < wanted_.size() && wanted_[i]; }
  // Whether operators of ONNX Runtime's training graphs may be emitted, as gradients/fused.cc does for all nodes that it knows.
  // They have no gradients themselves.
  bool fused() const { return fused_; }

  Expr in(std::size_t i);   // null when left out
  Expr out(std::size_t i);  // a node that lacks this output gets it
  // The gradient that flows into output i; null when nothing depends on that output.
  Expr dy(std::size_t i = 0);
  // The same with zeros in place of null.
  Expr dy_or_zeros(std::size_t i);

  // Operand i's gradient is `gradient`, already of the input's shape. Only for inputs that are wanted; ignored for others.
  void set(std::size_t i, Expr gradient);
  // The same for a gradient of output 0's shape, to which input i was broadcast.
  void set_broadcast(std::size_t i, Expr gradient);

  // Facts about a value of the forward graph. rank() throws Error(not_implemented) if it is unknown.
  std::int64_t rank(Expr e) const;
  const SymShape* shape(Expr e) const;    // null: unknown rank
  bool same_shape(Expr a, Expr b) const;  // surely; false when unknown
  bool is_float(Expr e) const;
  DataType dtype(Expr e) const;  // undefined: unknown
  // The value of a constant input, possibly unaligned; null when it is none.
  const Tensor* value(std::size_t i) const;

  Expr emit(const char* op, std::initializer_list<Expr> inputs, EmittedAttributes attributes = {});
  Expr emit(const char* op, const std::vector<Expr>& inputs, EmittedAttributes attributes = {});
  std::vector<Expr> emit_many(const char* op, const std::vector<Expr>& inputs, std::size_t outputs,
                              EmittedAttributes attributes = {});
  // This node's operator, version and attributes, with other inputs; `changed` attributes replace the node's. Returns output 0.
  Expr repeat(const std::vector<Expr>& inputs, EmittedAttributes changed = {}, std::size_t outputs = 1);
  std::vector<Expr> repeat_many(const std::vector<Expr>& inputs, EmittedAttributes changed, std::size_t outputs);
  // A node of any domain. `present`: by output whether there is such a one; empty: all.
  std::vector<Expr> emit_foreign(const char* domain, const char* op, int version, const std::vector<Expr>& inputs,
                                 std::size_t outputs, Attributes attributes = {}, const std::vector<bool>& present = {});

  Expr scalar(double value);  // of the element type of this node's gradients
  Expr ints(const std::vector<std::int64_t>& values);
  Expr int_scalar(std::int64_t value);

  // Sums `e` to the shape of `like`, from which it was broadcast.
  Expr sum_to(Expr e, Expr like);
  Expr zeros_like(Expr e);
  Expr shape_of(Expr e);                                     // int64[rank]
  Expr extents(Expr e, std::int64_t from, std::int64_t to);  // shape_of(e)[from:to]; negative from the end
  Expr reshape(Expr e, Expr shape);                          // zeros in `shape` are extents
  Expr reshape_like(Expr e, Expr like);
  // shape_of(e), as a constant where all extents are known, and with -1 for one that is not: for Reshape.
  Expr target_shape(Expr e);
  Expr sum(Expr e, const std::vector<std::int64_t>& axes, bool keep = true);
  Expr mean(Expr e, const std::vector<std::int64_t>& axes, bool keep = true);
  Expr cast_like(Expr e, Expr like);

  // For operators that only move elements of input 0, or fill with zeros. `positions` applies the operator to a tensor of int64:
  // positions 1, 2, … take the place of the elements, and 0 stands for filling. The gradient is added up by position.
  template <class F>
  Expr by_position(Expr x, Expr gradient, F&& positions) {
    return add_by_position(x, gradient, positions(number(x)));
  }
  // Shaped like x: at element i the sum of the gradient's elements whose position is i + 1.
  Expr add_by_position(Expr x, Expr gradient, Expr positions);

  // emit() of an operator of com.microsoft.
  Expr emit_ms(const char* op, const std::vector<Expr>& inputs, EmittedAttributes attributes = {});
  // emit() with those of this node's attributes, where it has them.
  std::vector<Expr> emit_with(const char* op, const std::vector<Expr>& inputs, std::initializer_list<const char*> attributes,
                              std::size_t outputs = 1);

  // The node by other operators, whose gradients are known: the outputs, in order. Emitted nodes alone may compute them.
  using Formula = std::function<std::vector<Expr>(GradientContext&)>;
  // Sets the gradients of all wanted inputs by differentiating the formula, which replaces the node: nothing is computed twice,
  // and random results stay the same. A formula that gives fewer outputs than the node has is computed besides it.
  void through(const Formula& formula);

  // Error(not_implemented): "no gradient of Conv: <why>".
  [[noreturn]] void refuse(const std::string& why) const;

  const std::vector<ValueId>& results() const { return results_; }  // by operand; kNoValue: none

 private:
  Expr number(Expr x);
  std::vector<Expr> add(std::string domain, std::string op, int version, const std::vector<Expr>& inputs, std::size_t outputs,
                        Attributes attributes);
  Expr constant(Tensor tensor);
  void infer_from(NodeId first);
  void replace_by(const std::vector<Expr>& outputs);

  Graph& graph_;
  NodeId id_ = kNoNode;
  Node node_;
  std::vector<ValueId> of_outputs_;
  std::vector<bool> wanted_;
  bool fused_ = false;
  std::vector<ValueId> results_;
  DataType elem_ = DataType::undefined;
};

// Arithmetic with broadcasting.
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);
Expr operator-(Expr a);
Expr operator+(Expr a, double b);
Expr operator-(Expr a, double b);
Expr operator*(Expr a, double b);
Expr operator/(Expr a, double b);
Expr operator-(double a, Expr b);
Expr operator+(double a, Expr b);
Expr operator*(double a, Expr b);
Expr operator/(double a, Expr b);
Expr call(const char* op, Expr a);          // a unary operator: "Exp"
Expr call(const char* op, Expr a, Expr b);  // "Less"
Expr call(const char* op, Expr a, double b);
Expr where(Expr condition, Expr a, Expr b);
Expr square(Expr a);

// Sets the gradients of the wanted inputs, from those of the outputs. At least one of these exists.
using GradientFn = void (*)(GradientContext&);

// Every file src/ops/gradients/<name>.cc defines `void register_gradients_<name>(GradientTable&)`; the list of calls is
// generated from the file names.
class GradientTable {
 public:
  // "Add" of ai.onnx, "com.microsoft.Gelu" of another domain.
  void add(std::string name, GradientFn fn);
  void add(std::initializer_list<const char*> names, GradientFn fn);
  struct Entry {
    const char* name;
    GradientFn fn;
  };
  void add(std::initializer_list<Entry> entries);
  // Null: the operator has none.
  GradientFn find(std::string_view domain, std::string_view name) const;
  const std::map<std::string, GradientFn, std::less<>>& all() const { return functions_; }

 private:
  std::map<std::string, GradientFn, std::less<>> functions_;
};

const GradientTable& gradients();

// Emits the nodes for one node and returns the gradients of its operands (kNoValue: none). Operators of users' libraries are
// asked for theirs. Throws Error(not_implemented) naming the node when there is no gradient.
std::vector<ValueId> emit_gradient(Graph& graph, NodeId id, std::vector<ValueId> of_outputs, std::vector<bool> wanted,
                                   bool fused = false);

}  // namespace sdx::ops
