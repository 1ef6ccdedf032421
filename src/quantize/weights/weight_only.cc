#include "quantize/weights/weight_only.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/thread_pool.h"
#include "ops/infer.h"
#include "passes/simplify/simplify.h"
#include "quantize/model/model_file.h"
#include "quantize/weights/activations.h"
#include "quantize/weights/block_matrix.h"
#include "quantize/weights/gptq.h"
#include "quantize/weights/operators.h"
#include "quantize/weights/targets.h"
#include "session/graphs/convert_opset.h"
#include "tensor/types.h"

namespace sdx::quantize {
namespace {

constexpr std::int64_t kFewestInBlock = 16;
constexpr int kBlocksOpset = 21;  // DequantizeLinear with block_size
constexpr std::int64_t kBlocksIr = 10;

template <class T>
bool contains(const std::vector<T>& list, const T& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// [n, k] of a target as floats.
std::vector<float> rows_of(const Target& t) {
  const Tensor source = t.weight.tensor->aligned();
  const auto count = static_cast<std::size_t>(t.k * t.n);
  std::vector<float> flat(count);
  switch (source.dtype()) {
    case DataType::float16: {
      const auto* from = static_cast<const std::uint16_t*>(source.data());
      std::transform(from, from + count, flat.begin(), half_to_float);
      break;
    }
    case DataType::bfloat16: {
      const auto* from = static_cast<const BFloat16*>(source.data());
      std::transform(from, from + count, flat.begin(), [](BFloat16 x) { return static_cast<float>(x); });
      break;
    }
    default: std::copy_n(static_cast<const float*>(source.data()), count, flat.begin());
  }
  if (t.transposed) return flat;
  std::vector<float> rows(count);
  constexpr std::int64_t kTile = 32;  // both sides of the transposition stay in the cache
  current_pool().parallel_for((t.n + kTile - 1) / kTile, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t tile = first; tile < last; ++tile) {
      const std::int64_t from = tile * kTile, to = std::min(t.n, from + kTile);
      for (std::int64_t k0 = 0; k0 < t.k; k0 += kTile) {
        for (std::int64_t c = from; c < to; ++c) {
          for (std::int64_t k = k0; k < std::min(t.k, k0 + kTile); ++k) {
            rows[static_cast<std::size_t>(c * t.k + k)] = flat[static_cast<std::size_t>(k * t.n + c)];
          }
        }
      }
    }
  });
  return rows;
}

bool finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

// The result for one matrix in one form; nodes that share the matrix share this.
struct Shared {
  const Target* first = nullptr;
  WeightFormat format;
  std::vector<const Target*> users;
};

class Quantizer {
 public:
  Quantizer(Model& model, const WeightOnlyOptions& options, CalibrationDataReader* data, WeightOnlyReport& report)
      : model_(model), options_(options), data_(data), report_(report) {}

  void run() {
    find(Scope{&model_.graph, nullptr, nullptr});
    refuse_unknown_names();
    if (options_.method == WeightMethod::gptq) by_products();
    for (const std::unique_ptr<Shared>& s : shared_) {
      if (!done_.contains(s.get())) replace(*s, nullptr);
    }
    for (Scope& scope : scopes_) scope.graph->compact();
    simplify::remove_dead(model_.graph);
    model_.graph.compact();
    model_.graph.drop_unused_values();
    if (report_.quantized.empty()) return;
    if (uses_contrib_) model_.opsets["com.microsoft"] = std::max(1, model_.opsets["com.microsoft"]);
    if (uses_int4_) model_.ir_version = std::max(model_.ir_version, kBlocksIr);
  }

 private:
  void find(Scope scope) {
    Scope& here = scopes_.emplace_back(scope);
    const std::size_t count = here.graph->nodes().size();
    for (NodeId id = 0; id < count; ++id) {
      Node& node = here.graph->node(id);
      if (node.removed) continue;
      names_.insert(node_name(*here.graph, node));
      for (Subgraph& s : node.subgraphs) find(Scope{s.graph.get(), &here, &s});
      if (node.domain.empty() && contains(options_.ops, node.op_type)) consider(here, id);
    }
  }

  void consider(Scope& scope, NodeId id) {
    const Node& node = scope.graph->node(id);
    if (node.op_type != "MatMul" && node.op_type != "Gemm" && node.op_type != "Gather") return;
    const std::string name = node_name(*scope.graph, node);
    if (!options_.nodes.empty() && !contains(options_.nodes, name)) return;
    Target target;
    std::string why = contains(options_.exclude, name) ? "excluded" : target_of(scope, id, target);
    const WeightFormat format = format_of(node, name, target);
    if (why.empty()) why = obstacle(node, target, format);
    if (!why.empty()) {
      if (target.weight.tensor != nullptr) report_.kept.push_back({name, node.op_type, std::move(why)});
      return;
    }
    const Target& kept = targets_.emplace_back(target);
    const auto key = std::tuple(kept.weight.scope, kept.weight.value, kept.transposed, format.bits, format.block_size,
                                format.symmetric, node.op_type == "Gather");
    Shared*& shared = by_weight_[key];
    if (shared == nullptr) {
      shared_.push_back(std::make_unique<Shared>());
      shared = shared_.back().get();
      shared->first = &kept;
      shared->format = format;
    }
    shared->users.push_back(&kept);
  }

  WeightFormat format_of(const Node& node, const std::string& name, const Target& target) const {
    WeightFormat f = options_.format;
    for (const auto& [named, own] : options_.node_formats) {
      if (named == name) f = own;
    }
    while (f.block_size > kFewestInBlock && f.block_size / 2 >= target.k) f.block_size /= 2;
    if (options_.method == WeightMethod::hqq && node.op_type != "Gather") f.symmetric = false;
    return f;
  }

  std::string obstacle(const Node& node, const Target& target, const WeightFormat& format) const {
    if (target.k * target.n < options_.min_elements) return "it has fewer elements than min_elements";
    if (node.op_type == "Gather" && options_.form == WeightForm::qdq) return "DequantizeLinear would dequantise the whole table";
    if (node.op_type == "Gather" && format.bits != 4 && target.weight.tensor->rank() != 2)
      return "its table has more than two axes";
    if (node.op_type == "Gather" && format.bits == 2 && target.k % 4 != 0) return "its rows do not fill whole bytes";
    if (options_.form == WeightForm::qdq && format.bits == 2) return "2 bits have no standard form";
    return {};
  }

  void refuse_unknown_names() const {
    const auto check_names = [&](const std::vector<std::string>& wanted, const char* what) {
      for (const std::string& name : wanted) {
        if (!names_.contains(name)) fail(ErrorCode::invalid_argument, "{}: the model has no node '{}'", what, name);
      }
    };
    check_names(options_.nodes, "nodes to quantize");
    check_names(options_.exclude, "nodes to exclude");
  }

  // Matrices of the main graph by their inputs; all that share an input use its products.
  void by_products() {
    std::map<ValueId, std::vector<Shared*>> by_input;
    for (const std::unique_ptr<Shared>& s : shared_) {
      const Target& t = *s->first;
      const Node& node = t.scope->graph->node(t.node);
      if (node.op_type == "Gather") continue;
      if (t.scope->parent != nullptr) {
        report_.warnings.push_back("node '" + node_name(*t.scope->graph, node) +
                                   "' lies in a subgraph, whose inputs are not seen: rounded to nearest");
        continue;
      }
      by_input[node.inputs[0]].push_back(s.get());
    }
    std::vector<ValueId> values;
    std::vector<std::int64_t> extents;
    for (const auto& [value, users] : by_input) {
      values.push_back(value);
      extents.push_back(users.front()->first->k);
    }
    if (values.empty()) return;
    SessionOptions session;
    session.providers = {"cpu"};
    session.custom_ops = options_.custom_ops;
    const Model original = model_;  // its tensors are shared: what is observed does not change under the loop
    input_products(original, values, extents, all_batches(data_), session,
                   [&](std::size_t i, const std::vector<float>& products) {
                     for (Shared* s : by_input[values[i]]) {
                       replace(*s, &products);
                       done_.insert(s);
                     }
                   });
  }

  void replace(const Shared& s, const std::vector<float>* hessian) {
    const Target& t = *s.first;
    const std::vector<float> weights = rows_of(t);
    const bool gather = t.scope->graph->node(t.node).op_type == "Gather";
    if (!finite(weights)) {
      for (const Target* u : s.users) {
        const Node& node = u->scope->graph->node(u->node);
        report_.kept.push_back({node_name(*u->scope->graph, node), node.op_type, "its weights are not all finite"});
      }
      return;
    }
    const BlockFormat format{s.format.bits, s.format.block_size, s.format.symmetric, t.weight.tensor->dtype()};
    BlockMatrix matrix;
    if (hessian != nullptr) {
      const Rounding scales = options_.search_scales ? Rounding::search : Rounding::nearest;
      matrix = gptq(weights, t.n, t.k, format, *hessian, {options_.damp, options_.act_order, scales});
    } else {
      matrix = quantize_blocks(weights, t.n, t.k, format, rounding(gather));
    }
    const double error = relative_error(weights, matrix);
    const Operands operands = make_operands(t, matrix, options_.form, gather);
    for (const Target* u : s.users) {
      const Node& node = u->scope->graph->node(u->node);
      report_.quantized.push_back(
          {node_name(*u->scope->graph, node), node.op_type, s.format.bits, t.k, t.n, s.format.block_size, error});
      use_operands(*u, operands, options_.accuracy_level);
    }
    uses_contrib_ = uses_contrib_ || options_.form == WeightForm::qoperator;
    uses_int4_ = uses_int4_ || options_.form == WeightForm::qdq || (gather && s.format.bits == 4);
  }

  Rounding rounding(bool gather) const {
    const bool integers = gather || options_.form == WeightForm::qdq;  // zero points have the codes' type there
    switch (options_.method) {
      case WeightMethod::search: return Rounding::search;
      case WeightMethod::hqq: return integers ? Rounding::search : Rounding::hqq;
      case WeightMethod::gptq: return options_.search_scales ? Rounding::search : Rounding::nearest;
      default: return Rounding::nearest;
    }
  }

  Model& model_;
  const WeightOnlyOptions& options_;
  CalibrationDataReader* data_;
  WeightOnlyReport& report_;
  std::deque<Scope> scopes_;
  std::deque<Target> targets_;
  std::set<std::string> names_;
  std::vector<std::unique_ptr<Shared>> shared_;
  std::map<std::tuple<Scope*, ValueId, bool, int, std::int64_t, bool, bool>, Shared*> by_weight_;
  std::set<const Shared*> done_;
  bool uses_contrib_ = false, uses_int4_ = false;
};

void check(const WeightFormat& f) {
  if (f.bits != 2 && f.bits != 4 && f.bits != 8) fail(ErrorCode::invalid_argument, "bits must be 2, 4 or 8, received {}", f.bits);
  constexpr std::int64_t kMost = 4096;
  if (f.block_size < kFewestInBlock || f.block_size > kMost || (f.block_size & (f.block_size - 1)) != 0) {
    fail(ErrorCode::invalid_argument, "block_size must be a power of two from 16 to 4096, received {}", f.block_size);
  }
}

}  // namespace

void check(const WeightOnlyOptions& o) {
  check(o.format);
  for (const auto& [name, format] : o.node_formats) check(format);
  if (o.accuracy_level < 0 || o.accuracy_level > 4) {
    fail(ErrorCode::invalid_argument, "accuracy_level must be from 0 to 4, received {}", o.accuracy_level);
  }
  for (const std::string& op : o.ops) {
    if (op != "MatMul" && op != "Gemm" && op != "Gather") {
      fail(ErrorCode::invalid_argument, "weights of MatMul, Gemm and Gather can be quantized, not those of '{}'", op);
    }
  }
  if (!(o.damp > 0) || o.damp > 1) fail(ErrorCode::invalid_argument, "damp must be above 0 and at most 1, received {}", o.damp);
}

void to_weight_only(Model& model, const WeightOnlyOptions& options, CalibrationDataReader* data, WeightOnlyReport& report) {
  check(options);
  int& opset = model.opsets.try_emplace("", kBlocksOpset).first->second;
  if (options.form == WeightForm::qdq && opset < kBlocksOpset) {
    session::convert_opset(model.graph, kBlocksOpset);
    opset = kBlocksOpset;
    static_cast<void>(ops::infer_in_place(model.graph, {.allow_unknown = true}));
  }
  Quantizer(model, options, data, report).run();
}

}  // namespace sdx::quantize
