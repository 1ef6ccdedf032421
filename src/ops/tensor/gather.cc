// Gather: ai.onnx 1, 11, 13. GatherElements: ai.onnx 11, 13. GatherND: ai.onnx 11, 12 (batch_dims), 13.
// com.microsoft 1: GatherND, TorchEmbedding.

#include <algorithm>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/gather_index.h"
#include "ops/tensor/movement.h"
#include "ops/tensor/shape_values.h"
#include "ops/tensor/signatures.h"

namespace sdx::ops {
namespace {

void infer_gather(InferContext& c) {
  const auto attr = parse<GatherAttrs>(c);
  const SymShape* data = c.shape(0);
  const SymShape* indices = c.shape(1);
  if (data == nullptr || indices == nullptr) {
    if (data != nullptr) normalize_axis(attr.axis, data->size());
    return c.output(0, c.dtype(0));
  }
  const auto axis = static_cast<std::ptrdiff_t>(normalize_axis(attr.axis, data->size()));
  SymShape out(data->begin(), data->begin() + axis);
  out.insert(out.end(), indices->begin(), indices->end());
  out.insert(out.end(), data->begin() + axis + 1, data->end());
  c.output(0, c.dtype(0), std::move(out));

  const std::vector<Dim>* elements = c.sym(0);
  if (elements == nullptr || data->size() != 1 || indices->size() > 1) return;
  const auto picks = known_ints(c, 1);
  if (!picks) return;
  const auto n = static_cast<std::int64_t>(elements->size());
  std::vector<Dim> picked;
  for (const std::int64_t i : *picks) {
    if (i < -n || i >= n) c.fail("index {} is out of range for extent {}", i, n);
    picked.push_back((*elements)[static_cast<std::size_t>(i < 0 ? i + n : i)]);
  }
  c.output_sym(0, std::move(picked));
}

void run_gather(OpContext& c) {
  const Tensor data = widened(c.input(0));
  const Tensor& indices = c.input(1);
  const auto axis = static_cast<std::size_t>(normalize_axis(parse<GatherAttrs>(c).axis, data.rank()));
  Shape shape(data.shape().begin(), data.shape().begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  shape.insert(shape.end(), data.shape().begin() + static_cast<std::ptrdiff_t>(axis) + 1, data.shape().end());
  const Ints at = checked_indices(indices, data.dim(axis));
  const std::int64_t outer = product(data.shape(), 0, axis);
  const std::int64_t inner = product(data.shape(), axis + 1, data.rank());
  const auto picks = static_cast<std::int64_t>(at.size());
  produce(c, 0, c.input(0).dtype(), shape, [&](Tensor& out) {
    if (out.size() == 0) return;
    dispatch_unit(out.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto* from = static_cast<const T*>(data.data());
      auto* to = static_cast<T*>(out.mutable_data());
      const std::int64_t extent = data.dim(axis);
      parallel_for(outer * picks, grain_for(inner * static_cast<std::int64_t>(sizeof(T))), [&](std::int64_t b, std::int64_t e) {
        for (std::int64_t i = b; i < e; ++i) {
          const std::int64_t row = (i / picks) * extent + at[static_cast<std::size_t>(i % picks)];
          std::copy_n(from + row * inner, inner, to + i * inner);
        }
      });
    });
  });
}

void infer_gather_elements(InferContext& c) {
  const SymShape* data = c.shape(0);
  const SymShape* indices = c.shape(1);
  if (data != nullptr) normalize_axis(parse<GatherAttrs>(c).axis, data->size());
  if (indices == nullptr) {
    if (data != nullptr) return c.output(0, c.dtype(0), SymShape(data->size()));
    return c.output(0, c.dtype(0));
  }
  if (data != nullptr && data->size() != indices->size()) {
    c.fail("'data' {} and 'indices' {} must have one rank", to_string(*data), to_string(*indices));
  }
  c.output(0, c.dtype(0), *indices);
}

void run_gather_elements(OpContext& c) {
  const Tensor data = widened(c.input(0));
  const Tensor& indices = c.input(1);
  const auto axis = static_cast<std::size_t>(normalize_axis(parse<GatherAttrs>(c).axis, data.rank()));
  check_element_indices(data.shape(), indices.shape(), axis);
  check_index_type(indices);
  produce(c, 0, c.input(0).dtype(), indices.shape(), [&](Tensor& out) {
    if (out.size() == 0) return;
    const ElementRows rows(data.shape(), indices.shape(), axis);
    dispatch_unit(out.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto* from = static_cast<const T*>(data.data());
      auto* to = static_cast<T*>(out.mutable_data());
      dispatch_index(indices, [&](const auto* at) {
        parallel_for(rows.rows(), grain_for(rows.run() * 8), [&](std::int64_t begin, std::int64_t end) {
          for_each_element_index(rows, at, begin, end, [=](std::int64_t i, std::int64_t offset) { to[i] = from[offset]; });
        });
      });
    });
  });
}

void infer_gather_nd(InferContext& c) {
  const SymShape* data = c.shape(0);
  const SymShape* indices = c.shape(1);
  if (data == nullptr || indices == nullptr) return c.output(0, c.dtype(0));
  const std::int64_t batch = parse<GatherNdAttrs>(c).batch_dims;
  check_nd_ranks(data->size(), indices->size(), batch);
  const Dim& depth = indices->back();
  if (!depth.is_const()) return c.output(0, c.dtype(0));
  check_nd_depth(depth.value(), data->size(), batch);
  SymShape out(indices->begin(), indices->end() - 1);
  for (std::int64_t i = 0; i < batch; ++i) {
    auto& d = out[static_cast<std::size_t>(i)];
    d = agree(d, (*data)[static_cast<std::size_t>(i)], "batch axes of data and indices");
  }
  out.insert(out.end(), data->begin() + static_cast<std::ptrdiff_t>(batch + depth.value()), data->end());
  c.output(0, c.dtype(0), std::move(out));
}

void run_gather_nd(OpContext& c) {
  const Tensor data = widened(c.input(0));
  const Tensor& indices = c.input(1);
  const std::int64_t batch = parse<GatherNdAttrs>(c).batch_dims;
  check_nd_ranks(data.rank(), indices.rank(), batch);
  const std::int64_t depth = indices.shape().back();
  check_nd_depth(depth, data.rank(), batch);
  for (std::size_t i = 0; i < static_cast<std::size_t>(batch); ++i) {
    if (data.dim(i) != indices.dim(i)) {
      c.fail("the first {} extents of data {} and indices {} must agree", batch, to_string(data.shape()),
             to_string(indices.shape()));
    }
  }
  Shape shape(indices.shape().begin(), indices.shape().end() - 1);
  shape.insert(shape.end(), data.shape().begin() + static_cast<std::ptrdiff_t>(batch + depth), data.shape().end());
  produce(c, 0, c.input(0).dtype(), shape, [&](Tensor& out) {
    if (out.size() == 0) return;
    const NdOffsets offsets(data.shape(), indices, batch);
    dispatch_unit(out.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto* from = static_cast<const T*>(data.data());
      auto* to = static_cast<T*>(out.mutable_data());
      const std::int64_t run = offsets.run();
      parallel_for(offsets.count(), grain_for(run * static_cast<std::int64_t>(sizeof(T))), [&](std::int64_t b, std::int64_t e) {
        if (run == 1) {
          for (std::int64_t i = b; i < e; ++i) to[i] = from[offsets.at(i)];
        } else {
          for (std::int64_t i = b; i < e; ++i) copy_units(from + offsets.at(i), to + i * run, run);
        }
      });
    });
  });
}

}  // namespace

void register_gather(OpTable& t) {
  OpDef gather("Gather", 1);
  gather.in("data", "T", types::any_tensor).in("indices", "Tind", types::indices).out("output", "T", types::any_tensor);
  gather.attrs<GatherAttrs>();
  t.add(std::move(gather).infer_with(infer_gather).run_with(run_gather));
  t.add(OpDef("com.microsoft", "TorchEmbedding", 1)
            .in("weight", "T", types::numeric)
            .in("indices", "", types::int64)
            .in("padding_idx", "", types::int64, Arity::optional)           // both matter
            .in("scale_grad_by_freq", "", types::boolean, Arity::optional)  // in training alone
            .out("Y", "T", types::numeric)
            .infer_with(infer_gather)
            .run_with(run_gather));
  OpDef gather_elements("GatherElements", 11);
  gather_elements.in("data", "T", types::any_tensor).in("indices", "Tind", types::indices);
  gather_elements.out("output", "T", types::any_tensor).attrs<GatherAttrs>();
  t.add(std::move(gather_elements).infer_with(infer_gather_elements).run_with(run_gather_elements));
  OpDef gather_nd("GatherND", 11);
  gather_nd.in("data", "T", types::any_tensor).in("indices", "", types::int64).out("output", "T", types::any_tensor);
  gather_nd.attrs<GatherNdAttrs>();
  t.add(std::move(gather_nd).infer_with(infer_gather_nd).run_with(run_gather_nd));
  OpDef gather_nd_ms("com.microsoft", "GatherND", 1);
  gather_nd_ms.in("data", "T", types::any_tensor).in("indices", "Tind", types::indices);
  gather_nd_ms.out("output", "T", types::any_tensor);
  t.add(std::move(gather_nd_ms).infer_with(infer_gather_nd).run_with(run_gather_nd));
}

}  // namespace sdx::ops
