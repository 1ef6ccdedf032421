// Operators that only rename memory: Reshape, Flatten, Squeeze, Unsqueeze, Identity, Dropout at inference, Clip
// without bounds.

#include "ops/math/signatures.h"
#include "ops/random/signatures.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

class ViewKernel : public Kernel {
 public:
  explicit ViewKernel(const Node& node) : reference_(make_reference(node)) {}
  std::string_view name() const override { return "view"; }
  int view_of() const override { return 0; }
  bool allocates_outputs() const override { return true; }
  // Copies; only called if shapes are not known before a run.
  void run(const KernelContext& c) const override { reference_->run(c); }

 private:
  std::unique_ptr<Kernel> reference_;
};

std::unique_ptr<Kernel> make_view(LowerContext& c) {
  if (!c.input(0).is_tensor()) return c.refuse("the input is not a tensor");
  if (c.dtype(0) == DataType::string) return c.refuse("strings are copied");
  return std::make_unique<ViewKernel>(c.node());
}

std::unique_ptr<Kernel> make_clip(LowerContext& c) {
  if (c.node().version < 11) return c.refuse("bounds that are attributes, as before opset 11");
  if (c.has_input(ops::ClipIn::kMin) || c.has_input(ops::ClipIn::kMax)) return c.refuse("has bounds");
  return make_view(c);
}

std::unique_ptr<Kernel> make_dropout(LowerContext& c) {
  if (c.has_output(1)) return c.refuse("the mask is requested");
  if (c.has_input(2) || ops::parse<ops::DropoutAttrs>(c).says_training()) return c.refuse("may run in training mode");
  return make_view(c);
}

}  // namespace

void register_kernels_view(KernelTable& t) {
  for (const char* op : {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"}) t.add("", op, "view", 0, make_view);
  t.add("", "Clip", "view", 0, make_clip);
  t.add("", "Dropout", "view", 0, make_dropout);
}

}  // namespace sdx::cpu
