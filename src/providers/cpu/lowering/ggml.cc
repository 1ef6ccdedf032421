// sdx GgmlMatMul: float32 activations, and constant weights in ggml's blocks, which are not copied.

#include "kernels/cpu/ggml/ggml.h"

#include "ops/quant/ggml.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

class GgmlKernel : public Kernel {
 public:
  GgmlKernel(const ops::GgmlRows& rows, std::int64_t n) : rows_(rows), n_(n), name_("matmul-" + std::string(rows.format->name)) {}
  std::string_view name() const override { return name_; }
  bool accepts_unaligned(std::size_t i) const override { return i == 1; }

  void run(const KernelContext& c) const override {
    const Tensor& a = c.input(0);
    if (a.rank() == 0 || a.shape().back() != rows_.k) {
      fail(ErrorCode::runtime_failure, "A's last extent must be K = {}, received {}", rows_.k, a.type_string());
    }
    GgmlArgs args;
    args.format = rows_.format;
    args.m = a.size() / rows_.k, args.n = n_, args.k = rows_.k;
    args.a = c.in<float>(0), args.lda = rows_.k;
    args.weights = c.input(1).data();
    args.bias = c.has_input(2) ? c.in<float>(2) : nullptr;
    args.c = c.out<float>(0), args.ldc = n_;
    ggml_gemm(args);
  }

 private:
  ops::GgmlRows rows_;
  std::int64_t n_;
  std::string name_;
};

std::unique_ptr<Kernel> make_ggml(LowerContext& c) {
  const ops::GgmlRows rows = ops::ggml_rows(ops::parse<ops::GgmlAttrs>(c));
  const Tensor* weights = c.constant(1);
  if (weights == nullptr) return c.refuse("the weights are not constant");
  if (weights->dtype() != DataType::uint8 || weights->rank() != 2 || weights->dim(1) != rows.bytes) {
    return c.refuse("the weights are not rows of K elements");
  }
  if (c.has_input(2)) {
    const SymShape* bias = c.shape(2);
    if (bias == nullptr || !all_const(*bias) || element_count(to_shape(*bias)) != weights->dim(0)) {
      return c.refuse("the bias does not have one element for each row of weights");
    }
  }
  return std::make_unique<GgmlKernel>(rows, weights->dim(0));
}

}  // namespace

void register_kernels_ggml(KernelTable& t) { t.add("sdx", "GgmlMatMul", "matmul-ggml", 10, make_ggml); }

}  // namespace sdx::cpu
