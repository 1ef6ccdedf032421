#include "train/artifacts/loss_graph.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/suggest.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "tensor/element.h"
#include "train/artifacts/model_edit.h"

namespace sdx::train {
namespace {

ValueId named(const Graph& graph, const std::string& name, const char* what) {
  if (const auto found = graph.find(name)) return *found;
  std::vector<std::string> names;
  for (const ValueInfo& v : graph.values()) names.push_back(v.name);
  const std::string near = closest(name, names);
  fail(ErrorCode::invalid_argument, "{}: the model has no value '{}'{}", what, name,
       near.empty() ? "" : "; did you mean '" + near + "'?");
}

bool is_float(const Type& type) { return type.is_tensor() && (ops::types::floats & ops::bit(type.elem)) != 0; }

class LossGraph {
 public:
  LossGraph(Model& model, const ArtifactOptions& options)
      : graph_(model.graph), options_(options), version_(model.opsets.at("")), scores_(scores_of(graph_, options)) {}

  ValueId add() {
    const Type& type = graph_.value(scores_).type;
    if (!is_float(type)) {
      fail(ErrorCode::invalid_argument, "the loss is computed from '{}', which is {}; expected a tensor of floats",
           graph_.value(scores_).name, type.str());
    }
    switch (options_.loss) {
      case Loss::none: return given();
      case Loss::cross_entropy: return cross_entropy();
      case Loss::mse: return mse();
      case Loss::bce_with_logits: return bce_with_logits();
      case Loss::l1: return l1();
    }
    fail(ErrorCode::invalid_argument, "there is no such loss");
  }

 private:
  ValueId given() const {
    const ValueInfo& loss = graph_.value(scores_);
    const auto is_one = [](const Dim& d) { return d == Dim(1); };
    if (loss.type.shape && std::all_of(loss.type.shape->begin(), loss.type.shape->end(), is_one)) return scores_;
    fail(ErrorCode::invalid_argument, "with the loss 'none', the model's output '{}' is the loss; it is {}, expected one number",
         loss.name, loss.type.str());
  }

  ValueId cross_entropy() {
    warn_of_softmax();
    const ValueId labels = target("labels", labels_type());
    const ValueId loss =
        op("SoftmaxCrossEntropyLoss", {scores_, labels}, "onnx::loss::2", attributes_of({{"reduction", std::string("mean")}}));
    const ValueId log_prob = graph_.add_value("onnx::log_prob::3");
    const NodeId id = graph_.value(loss).producer;
    graph_.node(id).outputs.push_back(log_prob);
    graph_.value(log_prob).producer = id;
    return loss;
  }

  // The arguments of PyTorch's and ONNX's losses: one label for each row of classes, which are axis 1.
  Type labels_type() const {
    const ValueInfo& scores = graph_.value(scores_);
    if (!scores.type.shape) return Type::tensor(DataType::int64);
    SymShape shape = *scores.type.shape;
    if (shape.size() < 2) {
      fail(ErrorCode::invalid_argument, "cross-entropy of '{}', which is {}; expected [N, classes, ...]", scores.name,
           scores.type.str());
    }
    shape.erase(shape.begin() + 1);
    return Type::tensor(DataType::int64, shape);
  }

  void warn_of_softmax() const {
    const NodeId from = graph_.value(scores_).producer;
    if (from == kNoNode || (graph_.node(from).op_type != "Softmax" && graph_.node(from).op_type != "LogSoftmax")) return;
    log::warning("the loss is computed from '{}', the output of {}; cross-entropy expects its input: loss_input \"{}\"",
                 graph_.value(scores_).name, graph_.node(from).op_type, graph_.value(graph_.node(from).inputs[0]).name);
  }

  ValueId mse() {
    const ValueId error = op("Sub", {scores_, target("target", graph_.value(scores_).type)}, "onnx::sub_output::1");
    return mean(op("Mul", {error, error}, "onnx::pow_output::4"), "onnx::reducemean_output::6");
  }

  ValueId l1() {
    const ValueId error = op("Sub", {scores_, target("target", graph_.value(scores_).type)}, "onnx::sub_output::1");
    return mean(op("Abs", {error}, "onnx::abs_output::3"), "onnx::reducemean_output::5");
  }

  // t softplus(-x) + (1 - t) softplus(x): it does not overflow, nor lose small terms beside large ones.
  ValueId bce_with_logits() {
    const ValueId t = target("target", graph_.value(scores_).type);
    Tensor one(graph_.value(scores_).type.elem, {});
    set_element(one, 0, 1);
    const ValueId ones = graph_.add_constant("onnx::bceloss.sub_ones::4", std::move(one));
    const ValueId missed = op("Softplus", {op("Neg", {scores_}, "onnx::neg_output::5")}, "onnx::softplus_output::7");
    const ValueId wrong = op("Softplus", {scores_}, "onnx::softplus_output::13");
    const ValueId first = op("Mul", {t, missed}, "onnx::mul_output::9");
    const ValueId second = op("Mul", {op("Sub", {ones, t}, "onnx::sub_output::15"), wrong}, "onnx::mul_output::17");
    return mean(op("Add", {first, second}, "onnx::add_output::19"), "onnx::reducemean_output::23");
  }

  ValueId mean(ValueId v, const char* name) {
    Attributes attributes;
    attributes.set("keepdims", std::int64_t{0});
    return op("ReduceMean", {v}, name, attributes);
  }

  ValueId op(const char* type, std::vector<ValueId> inputs, const char* name, Attributes attributes = {}) {
    return add_node(graph_, make_node({}, type, version_, std::move(inputs), std::move(attributes)), name);
  }

  // A value of the model of that name, a second output of the model if requested, or a new input.
  ValueId target(const char* usual, const Type& type) {
    const std::vector<std::string>& names = options_.loss_input_names;
    if (names.size() > 1) return named(graph_, names[1], "loss_input_names");
    const std::string name = options_.target_name.empty() ? usual : options_.target_name;
    if (const auto found = graph_.find(name)) return *found;
    return graph_.add_input(name, type);
  }

  Graph& graph_;
  const ArtifactOptions& options_;
  int version_;
  ValueId scores_;
};

}  // namespace

int number_after(Loss loss) {
  switch (loss) {
    case Loss::cross_entropy: return 5;
    case Loss::mse: return 8;
    case Loss::bce_with_logits: return 25;
    case Loss::l1: return 7;
    default: return 1;
  }
}

ValueId scores_of(const Graph& graph, const ArtifactOptions& options) {
  if (options.loss_input_names.size() > 2) {
    fail(ErrorCode::invalid_argument,
         "loss_input_names has {} names; expected the loss's input, and the target where that is a value of the model",
         options.loss_input_names.size());
  }
  if (!options.loss_input_names.empty()) return named(graph, options.loss_input_names[0], "loss_input_names");
  if (!options.loss_input.empty()) return named(graph, options.loss_input, "loss_input");
  if (graph.outputs().empty()) fail(ErrorCode::invalid_argument, "the model has no output from which a loss could be computed");
  return graph.outputs()[0];
}

ValueId add_loss(Model& model, const ArtifactOptions& options) {
  const ValueId loss = LossGraph(model, options).add();
  model.graph.compact();
  ops::infer_in_place(model.graph);
  return loss;
}

}  // namespace sdx::train
