#include "providers/cpu/custom_kernel.h"

#include <string>

#include "ops/custom.h"

namespace sdx::cpu {
namespace {

// "custom:libexample.so" is what reports show.
std::string shown_name(const std::string& library) { return "custom:" + library.substr(library.find_last_of('/') + 1); }

class LibraryKernel : public Kernel {
 public:
  explicit LibraryKernel(const Node& node) : node_(node), name_(shown_name(node.custom->library)), kernel_(node) {}
  std::string_view name() const override { return name_; }
  bool allocates_outputs() const override { return true; }
  void run(const KernelContext& c) const override {
    ops::OpContext context(node_, c.inputs, c.outputs, *c.services);
    kernel_.run(context);
  }

 private:
  const Node& node_;  // of the program's graph, which outlives its kernels
  std::string name_;
  ops::CustomKernel kernel_;
};

// A kernel around the runner of a room above the engine.
class RunnerKernel : public Kernel {
 public:
  RunnerKernel(const Graph& graph, const Node& node)
      : node_(node), name_(shown_name(node.custom->library)), runner_(node.custom->make(graph, node)) {}
  std::string_view name() const override { return name_; }
  bool allocates_outputs() const override { return true; }
  void run(const KernelContext& c) const override {
    ops::OpContext context(node_, c.inputs, c.outputs, *c.services);
    runner_->run(context);
  }

 private:
  const Node& node_;
  std::string name_;
  std::unique_ptr<ops::CustomRunner> runner_;
};

}  // namespace

std::unique_ptr<Kernel> make_runner(const Graph& graph, const Node& node) { return std::make_unique<RunnerKernel>(graph, node); }
std::unique_ptr<Kernel> make_custom(const Node& node) { return std::make_unique<LibraryKernel>(node); }

}  // namespace sdx::cpu
