// GridSample of NCHW float32 images: linear, with zeros or the border beyond the edges.

#include "kernels/cpu/image/grid_sample.h"

#include "ops/image/signatures.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

class GridSampleKernel : public Kernel {
 public:
  GridSampleKernel(const Node& node, bool align_corners, bool border)
      : align_corners_(align_corners), border_(border), reference_(make_reference(node)) {}
  std::string_view name() const override { return "grid-sample-f32"; }
  void run(const KernelContext& c) const override {
    const Shape &x = c.input(0).shape(), &grid = c.input(1).shape();
    // The reference kernel reports shapes that do not fit, and handles images of one row or column.
    if (grid.back() != 2 || grid[0] != x[0] || x[2] < 2 || x[3] < 2) return reference_->run(c);
    if (c.output(0).size() == 0) return;
    grid_sample_f32({x[0], x[1], x[2], x[3], grid[1] * grid[2], align_corners_, border_}, c.in<float>(0), c.in<float>(1),
                    c.out<float>(0));
  }

 private:
  bool align_corners_, border_;
  std::unique_ptr<Kernel> reference_;
};

std::unique_ptr<Kernel> make_grid_sample(LowerContext& c) {
  if (c.dtype(0) != DataType::float32 || c.dtype(1) != DataType::float32) return c.refuse("not float32");
  const SymShape *x = c.shape(0), *grid = c.shape(1);
  if (x == nullptr || x->size() != 4 || grid == nullptr || grid->size() != 4) return c.refuse("not known to have rank 4");
  const auto attr = ops::parse<ops::GridSampleAttrs>(c);
  if (attr.mode != "linear" && attr.mode != "bilinear") return c.refuse("mode " + std::string(attr.mode));
  if (attr.padding_mode != "zeros" && attr.padding_mode != "border") {
    return c.refuse("padding mode " + std::string(attr.padding_mode));
  }
  return std::make_unique<GridSampleKernel>(c.node(), attr.align_corners, attr.padding_mode == "border");
}

}  // namespace

void register_kernels_grid_sample(KernelTable& t) {
  for (const char* domain : {"", "com.microsoft"}) t.add(domain, "GridSample", "grid-sample-f32", 10, make_grid_sample);
}

}  // namespace sdx::cpu
