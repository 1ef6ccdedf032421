// Operators whose reference kernels, in ops/, are as fast as memory: they move or fill elements by their size alone, in runs, on
// all threads. A separate kernel could not be faster, so these run here under a name of their own.

#include "ops/image/signatures.h"
#include "ops/tensor/signatures.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

class OwnFunction : public Kernel {
 public:
  OwnFunction(const Node& node, std::string_view name) : name_(name), function_(make_reference(node)) {}
  std::string_view name() const override { return name_; }
  bool allocates_outputs() const override { return true; }
  void run(const KernelContext& c) const override { function_->run(c); }

 private:
  std::string_view name_;
  std::unique_ptr<Kernel> function_;
};

bool of_whole_bytes(DataType type) { return type != DataType::string && type != DataType::undefined && bit_width(type) >= 8; }

std::unique_ptr<Kernel> make_move(LowerContext& c) {
  if (!of_whole_bytes(c.output(0).elem) || !of_whole_bytes(c.dtype(0))) return c.refuse("strings and elements below one byte");
  return std::make_unique<OwnFunction>(c.node(), "move");
}

std::unique_ptr<Kernel> make_fill(LowerContext& c) {
  if (!of_whole_bytes(c.output(0).elem)) return c.refuse("strings and elements below one byte");
  return std::make_unique<OwnFunction>(c.node(), "fill");
}

std::unique_ptr<Kernel> make_nearest(LowerContext& c) {
  if (ops::parse<ops::ResizeAttrs>(c).mode != "nearest") return c.refuse("computes between elements");
  return make_move(c);
}

}  // namespace

void register_kernels_movement(KernelTable& t) {
  for (const char* op :
       {"GatherElements", "GatherND", "Scatter", "ScatterElements", "ScatterND", "TensorScatter", "Split", "Slice", "Pad",
        "CenterCropPad", "Tile", "Expand", "DepthToSpace", "SpaceToDepth", "Trilu", "ReverseSequence", "Compress", "NonZero"}) {
    t.add("", op, "move", 20, make_move);
  }
  for (const char* op : {"GatherND", "Pad", "Trilu"}) t.add("com.microsoft", op, "move", 20, make_move);
  for (const char* op : {"Resize", "Upsample"}) t.add("", op, "move", 20, make_nearest);
  for (const char* op : {"ConstantOfShape", "OneHot", "EyeLike", "Range"}) t.add("", op, "fill", 20, make_fill);
}

}  // namespace sdx::cpu
