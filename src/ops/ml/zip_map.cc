// ZipMap: ai.onnx.ml 1. Each row becomes a map from class label to score.

#include "ops/ml/ml_inputs.h"
#include "ops/ml/ml_scores.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

void infer_zip_map(InferContext& c) {
  const ClassLabels labels = class_labels(c.node());
  c.output(0, Type::sequence(Type::map(labels.type(), Type::tensor(DataType::float32, SymShape{}))));
}

void run_zip_map(OpContext& c) {
  const auto kept = c.once<ClassLabels>([&] { return class_labels(c.node()); });
  const ClassLabels& labels = *kept;
  const Rows rows = rows_of(c, c.input(0));
  const auto classes = static_cast<std::int64_t>(labels.size());
  if (classes == 0) c.fail("no class labels: expected classlabels_int64s or classlabels_strings");
  if (classes != rows.width) c.fail("X has {} scores in a row, but there are {} class labels", rows.width, classes);
  const Tensor keys = labels.strings.empty() ? Tensor::of<std::int64_t>({classes}, labels.ints)
                                             : Tensor::of<std::string>({classes}, labels.strings);
  const auto scores = c.input(0).values<float>();
  Sequence out;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const auto row = scores.subspan(static_cast<std::size_t>(r * classes), labels.size());
    out.items.emplace_back(Map{keys, Tensor::of<float>({classes}, row)});
  }
  c.set_output(0, std::move(out));
}

}  // namespace

void register_zip_map(OpTable& t) {
  t.add(OpDef(kMlDomain, "ZipMap", 1)
            .in("X", "", bit(DataType::float32))
            .out("Z", "", types::sequence)
            .attrs<ClassLabelAttrs>()
            .infer_with(infer_zip_map)
            .run_with(run_zip_map));
}

}  // namespace sdx::ops
