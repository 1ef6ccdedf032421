// A node of a program's operator: its kernel is made when a graph is compiled and computes at each run.

#include <exception>

#include "base/error.h"
#include "dropin/custom/operators_impl.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {
namespace {

// Attributes and constants may lie unaligned in the model's file.
OrtValue value_of(const Tensor& tensor) {
  OrtValue v;
  v.value = tensor.aligned();
  return v;
}

OrtKernelInfo::Argument argument_of(const Graph& graph, ValueId id) {
  if (id == kNoValue) return {};
  const ValueInfo& v = graph.value(id);
  OrtKernelInfo::Argument a{v.name, (v.type.known() ? v.type : v.declared).str(), std::nullopt};
  if (v.constant && !v.is_input) a.constant = value_of(*v.constant);
  return a;
}

OrtKernelInfo info_of(const Graph& graph, const Node& node, const Signature& s, std::shared_ptr<const KernelHost> host) {
  OrtKernelInfo info{node.name, node.op_type, node.domain, s.since, node.attributes, {}, {}, std::move(host)};
  for (const ValueId id : node.inputs) info.inputs.push_back(argument_of(graph, id));
  for (const ValueId id : node.outputs) info.outputs.push_back(argument_of(graph, id));
  return info;
}

DataType dtype_of(const Graph& graph, ValueId id) {
  if (id == kNoValue) return DataType::undefined;
  const ValueInfo& v = graph.value(id);
  return v.type.elem != DataType::undefined ? v.type.elem : v.declared.elem;
}

class ProgramKernel : public ops::CustomRunner {
 public:
  ProgramKernel(const Graph& graph, const Node& node) : custom_(node.custom) {
    const ProgramOperator& op = operator_of(node);
    std::vector<DataType> types;
    for (const ValueId id : node.inputs) types.push_back(dtype_of(graph, id));
    const Signature* s = choose(op, types, node.version);
    if (s == nullptr) {
      fail(ErrorCode::not_implemented, "Could not find an implementation for {}({}) node with name '{}'", node.op_type,
           node.version, node.name);
    }
    op_ = s->op;
    shown_ = fmt::format("{} node. Name:'{}'", node.op_type, node.name);
    info_ = info_of(graph, node, *s, op.host);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const DataType said = s->outputs.empty() ? DataType::undefined : type_of_element(formal(s->outputs, i).type);
      output_types_.push_back(said != DataType::undefined ? said : dtype_of(graph, node.outputs[i]));
    }
    create();
  }

  ~ProgramKernel() override {
    try {
      op_->KernelDestroy(kernel_);
    } catch (...) {  // nobody is left to be told
    }
  }

  void run(ops::OpContext& context) const override {
    OrtKernelContext c(context, info_, output_types_);
    const std::string what = "Non-zero status code returned while running " + shown_ + " Status Message: ";
    guard(what, [&] {
      if (op_->version >= 16 && op_->KernelComputeV2 != nullptr) return throw_status(op_->KernelComputeV2(kernel_, &c), what);
      op_->KernelCompute(kernel_, &c);
    });
    for (std::size_t i = 0; i < c.outputs.size(); ++i) {
      if (!c.outputs[i] && context.wants_output(i)) {
        fail(ErrorCode::runtime_failure, "{}output {} was not made", what, i);
      }
    }
  }

 private:
  // Turns exceptions of a program's functions into our own.
  template <class F>
  static void guard(const std::string& what, F&& call) {
    try {
      call();
    } catch (const Error&) {
      throw;
    } catch (const OrtError& e) {
      fail(ErrorCode::runtime_failure, "{}{}", what, e.message);
    } catch (const std::exception& e) {
      fail(ErrorCode::runtime_failure, "{}{}", what, e.what());
    } catch (...) {
      fail(ErrorCode::runtime_failure, "{}an exception of unknown type", what);
    }
  }

  void create() {
    const std::string what = "while making the kernel of " + shown_ + " ";
    guard(what, [&] {
      if (op_->version >= 16 && op_->CreateKernelV2 != nullptr) {
        return throw_status(op_->CreateKernelV2(op_, api(), &info_, &kernel_), what);
      }
      kernel_ = op_->CreateKernel(op_, api(), &info_);
    });
  }

  std::shared_ptr<const ops::CustomOp> custom_;
  const OrtCustomOp* op_ = nullptr;
  std::string shown_;
  OrtKernelInfo info_;
  std::vector<DataType> output_types_;
  void* kernel_ = nullptr;
};

}  // namespace

OrtKernelContext::OrtKernelContext(ops::OpContext& context, const OrtKernelInfo& kernel_info, std::vector<DataType> types)
    : op(context),
      info(kernel_info),
      output_types(std::move(types)),
      inputs(context.num_inputs()),
      outputs(context.num_outputs()) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!context.has_input(i)) continue;
    inputs[i].emplace();
    inputs[i]->value = context.input_value(i);
    inputs[i]->type = onnx_type_of(inputs[i]->value);
  }
}

std::unique_ptr<ops::CustomRunner> make_program_kernel(const Graph& graph, const Node& node) {
  return std::make_unique<ProgramKernel>(graph, node);
}

}  // namespace sdx::dropin
