// Gemm: ai.onnx 1, 6 (C only broadcast when `broadcast` says so), 7, 9 (integers), 11 (C optional), 13 (bfloat16).
// Integers: alpha and beta scale in double and are truncated; with both 1, the common case, arithmetic is exact and wraps.

#include "ops/context.h"
#include "ops/matrix/gemm_common.h"
#include "ops/matrix/signatures.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

constexpr TypeSet kTypes = types::floats | set_of(DataType::int32, DataType::int64, DataType::uint32, DataType::uint64);

void add_versions(OpTable& t) {
  for (const int since : {1, 7, 11}) {
    OpDef def("Gemm", since);
    def.in("A B", "T", kTypes).in("C", "T", kTypes, since < 11 ? Arity::required : Arity::optional);
    def.out("Y", "T", kTypes);
    def.attrs<GemmAttrs>();
    t.add(std::move(def).infer_with(infer_gemm).run_with([](OpContext& c) { run_gemm(c); }));
  }
}

}  // namespace

void register_gemm(OpTable& t) { add_versions(t); }

}  // namespace sdx::ops
