#include "train/artifacts/optimizer_model.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "train/artifacts/model_edit.h"
#include "train/step/rule.h"

namespace sdx::train {
namespace {

// Named as the members of OptimizerOptions are.
template <class Options, class F>
void each_float(Options& o, F&& f) {
  f("beta1", o.beta1);
  f("beta2", o.beta2);
  f("epsilon", o.epsilon);
  f("weight_decay", o.weight_decay);
  f("momentum", o.momentum);
  f("dampening", o.dampening);
  f("alpha", o.alpha);
  f("initial_accumulator", o.initial_accumulator);
}

bool plain_sgd(const OptimizerOptions& o) {
  return o.kind == OptimizerKind::sgd && o.momentum == 0 && o.weight_decay == 0 && o.dampening == 0 && !o.nesterov;
}

std::size_t moments(const OptimizerOptions& o) {
  switch (o.kind) {
    case OptimizerKind::adamw:
    case OptimizerKind::adam:
    case OptimizerKind::rmsprop: return 2;
    default: return 1;
  }
}

Attributes adamw_attributes(const OptimizerOptions& o) {
  Attributes a;
  a.set("alpha", o.beta1);
  a.set("beta", o.beta2);
  a.set("epsilon", o.epsilon);
  a.set("weight_decay", o.weight_decay);
  a.set("correct_bias", std::int64_t{o.correct_bias});
  a.set("adam_mode", o.adam_mode);
  return a;
}

Attributes own_attributes(const OptimizerOptions& o) {
  Attributes a;
  a.set("kind", std::string(to_string(o.kind)));
  each_float(o, [&](const char* name, float value) { a.set(name, value); });
  a.set("correct_bias", std::int64_t{o.correct_bias});
  a.set("nesterov", std::int64_t{o.nesterov});
  return a;
}

Node optimizer_node(const OptimizerOptions& o) {
  Node n;
  n.version = 1;
  n.domain = "com.microsoft";
  if (o.kind == OptimizerKind::adamw) {
    n.op_type = "AdamWOptimizer";
    n.attributes = adamw_attributes(o);
  } else if (plain_sgd(o)) {
    n.op_type = "SGDOptimizerV2";
  } else {
    n.domain = "sdx";
    n.op_type = "Optimizer";
    n.attributes = own_attributes(o);
  }
  return n;
}

ValueId clipped(Graph& g, ValueId gradients, float norm, int& number) {
  Attributes a;
  a.set("max_norm", norm);
  const std::string name = fmt::format("onnx::clip_grad_norm_output::{}", number++);
  const ValueId out = add_node(g, make_node({}, "InplaceClipGradNorm", 1, {gradients}, std::move(a), "com.microsoft"), name);
  g.node(g.value(out).producer).name = fmt::format("onnx::InplaceClipGradNorm::{}", number++);
  g.value(out).type = g.value(gradients).type;
  return out;
}

}  // namespace

Model optimizer_model(const OptimizerOptions& options, int opset, int number) {
  check_options(options);
  Model model;
  model.ir_version = kTrainingIrVersion;
  model.producer_name = "sardonyx";
  model.opsets = {{"", opset}, {"com.microsoft", 1}};
  Graph& g = model.graph;
  g.name = "graph";
  Node node = optimizer_node(options);
  if (node.domain == "sdx") model.opsets["sdx"] = 1;
  const ValueId rate = g.add_input("learning_rate", Type::tensor(DataType::float32, {Dim(1)}));
  const ValueId step = g.add_input("step", Type::tensor(DataType::int64, {Dim(1)}));
  std::vector<ValueId> lists;
  for (const char* name : {"params", "gradients", "first_order_moments", "second_order_moments"}) {
    if (lists.size() == 2 + moments(options)) break;
    lists.push_back(g.add_input(name, Type::sequence(Type::tensor(DataType::float32))));
  }
  if (options.clip_norm > 0) lists[1] = clipped(g, lists[1], options.clip_norm, number);
  const bool sgd = node.op_type == "SGDOptimizerV2";
  node.inputs = {rate};
  if (!sgd) node.inputs.push_back(step);
  node.inputs.insert(node.inputs.end(), lists.begin(), sgd ? lists.begin() + 2 : lists.end());
  const bool adamw = node.op_type == "AdamWOptimizer";
  const std::string flag = fmt::format("onnx::{}::{}", adamw ? "adamw.updated_flag" : "update_completed", number++);
  node.name = fmt::format("onnx::{}::{}", node.op_type, number);
  const ValueId done = g.add_value(flag, Type::tensor(DataType::boolean, {Dim(1)}));
  node.outputs = {done};
  g.add_node(std::move(node));
  g.add_output(done);
  return model;
}

OptimizerOptions optimizer_of(const Model& model) {
  OptimizerOptions out;
  const Node* found = nullptr;
  for (const Node& n : model.graph.nodes()) {
    if (n.domain == "com.microsoft" && n.op_type == "InplaceClipGradNorm") {
      out.clip_norm = n.attributes.get_float("max_norm", 1);
    } else if (found != nullptr) {
      fail(ErrorCode::not_implemented, "the optimizer model has {} beside its optimizer", n.op_type);
    } else {
      found = &n;
    }
  }
  if (found == nullptr) fail(ErrorCode::invalid_model, "the optimizer model has no optimizer");
  const Attributes& a = found->attributes;
  if (found->op_type == "AdamWOptimizer" && found->domain == "com.microsoft") {
    out.beta1 = a.get_float("alpha", out.beta1);
    out.beta2 = a.get_float("beta", out.beta2);
    out.epsilon = a.get_float("epsilon", 1e-8F);  // the operator's default, not that of generate_artifacts
    out.weight_decay = a.get_float("weight_decay", 1e-2F);
    out.correct_bias = a.get_int("correct_bias", 1) != 0;
    out.adam_mode = a.get_int("adam_mode", 0);
  } else if (found->op_type == "SGDOptimizerV2" && found->domain == "com.microsoft") {
    out.kind = OptimizerKind::sgd;
  } else if (found->op_type == "Optimizer" && found->domain == "sdx") {
    out.kind = optimizer_named(a.get_string("kind"));
    each_float(out, [&](const char* name, float& value) { value = a.get_float(name, value); });
    out.correct_bias = a.get_int("correct_bias", 1) != 0;
    out.nesterov = a.get_int("nesterov", 0) != 0;
  } else {
    fail(ErrorCode::not_implemented,
         "the optimizer model's node is {}; known are AdamWOptimizer, SGDOptimizerV2 and sdx.Optimizer", found->op_type);
  }
  check_options(out);
  return out;
}

}  // namespace sdx::train
