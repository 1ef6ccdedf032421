// Sparse tensors: values with the places that they have. The engine computes with dense ones, which sessions get instead.
#include <algorithm>
#include <cstring>

#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"
#include "dropin/values/values.h"

namespace sdx::dropin {
namespace {

SparseTensor& sparse_of(const OrtValue* value) {
  const OrtValue& v = require(value, "ort_value");
  if (!v.sparse) fail_ort(ORT_INVALID_ARGUMENT, "the ort_value must contain a constructed sparse tensor");
  return *v.sparse;
}
// A sparse tensor that has values and places, so that it can be read.
const SparseTensor& filled(const OrtValue* value) {
  const SparseTensor& sparse = sparse_of(value);
  if (sparse.format == ORT_SPARSE_UNDEFINED) fail_ort(ORT_INVALID_ARGUMENT, "Sparse Tensor does not contain sparse data");
  return sparse;
}

SparseTensor empty_sparse(DataType type, Shape shape) {
  SparseTensor sparse;
  sparse.dtype = type;
  sparse.dense_shape = std::move(shape);
  return sparse;
}

OrtValue* make_sparse(SparseTensor sparse) {
  auto made = std::make_unique<OrtValue>();
  made->type = ONNX_TYPE_SPARSETENSOR;
  made->sparse = std::make_shared<SparseTensor>(std::move(sparse));
  return made.release();
}

OrtStatus* is_sparse(const OrtValue* value, int* out) {
  return guarded([&] { require(out, "out") = require(value, "value").sparse ? 1 : 0; });
}

OrtStatus* create(OrtAllocator* allocator, const std::int64_t* extents, std::size_t rank, ElementType element, OrtValue** out) {
  return guarded([&] {
    require(allocator, "allocator");
    require(out, "out");
    *out = make_sparse(empty_sparse(checked_type(element), shape_of(extents, rank)));
  });
}

OrtStatus* create_with_values(const OrtMemoryInfo* info, void* data, const std::int64_t* dense, std::size_t dense_rank,
                              const std::int64_t* values, std::size_t values_rank, ElementType element, OrtValue** out) {
  return guarded([&] {
    require(info, "info");
    const DataType type = checked_type(element);
    if (type == DataType::string) {
      fail_ort(
          ORT_INVALID_ARGUMENT,
          "Can not use strings in pre-allocated memory. Use CreateSparseTensorAsOrtValue() to allocate memory inside and copy");
    }
    SparseTensor sparse = empty_sparse(type, shape_of(dense, dense_rank));
    Shape shape = shape_of(values, values_rank);
    if (element_count(shape) > 0) require_memory(data, "p_data");
    sparse.values = Tensor::view_mutable(data, type, std::move(shape));
    auto made = std::unique_ptr<OrtValue>(make_sparse(std::move(sparse)));
    made->memory = keep_info(info);
    require(out, "out");
    *out = made.release();
  });
}

// Values that a fill copies: strings come as pointers to texts.
Tensor copied_values(DataType type, const std::int64_t* extents, std::size_t rank, const void* data) {
  Tensor tensor(type, shape_of(extents, rank));
  if (tensor.size() > 0) require_memory(data, "values");
  if (type == DataType::string) {
    const auto* const texts = static_cast<const char* const*>(data);
    for (std::size_t i = 0; std::string & s : tensor.mutable_values<std::string>()) s = &require(texts[i++], "a string");
  } else if (tensor.bytes() > 0) {
    std::memcpy(tensor.mutable_data(), data, tensor.bytes());
  }
  return tensor;
}

template <class T>
Tensor copied(const T* data, Shape shape) {
  const auto count = static_cast<std::size_t>(element_count(shape));
  if (count > 0) require_memory(data, "indices");
  return Tensor::of<T>(std::move(shape), std::span<const T>(data, count));
}

std::int64_t dense_count(const SparseTensor& sparse) { return element_count(sparse.dense_shape); }

[[noreturn]] void refuse(const std::string& why) { fail_ort(ORT_INVALID_ARGUMENT, why); }

// The indices are as many as the values (places in the flat tensor) or twice as many (rows and columns).
std::vector<Tensor> coo_indices(const SparseTensor& sparse, std::int64_t values, const std::int64_t* indices, std::size_t count) {
  const auto number = static_cast<std::int64_t>(count);
  const bool pairs = number == 2 * values && values > 0;
  if (number != values && !pairs) {
    refuse("Index count: " + std::to_string(count) + " must be equal to or twice the values size: " + std::to_string(values));
  }
  if (pairs && sparse.dense_shape.size() != 2) refuse("indices of rows and columns are for dense shapes of two extents");
  if (count > 0) require(indices, "indices");
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t limit = pairs ? sparse.dense_shape[i % 2] : dense_count(sparse);
    if (indices[i] < 0 || indices[i] >= limit) refuse("COO index " + std::to_string(indices[i]) + " is out of the dense shape");
  }
  std::vector<Tensor> made;
  made.push_back(copied(indices, pairs ? Shape{values, 2} : Shape{values}));
  return made;
}

std::vector<Tensor> csr_indices(const SparseTensor& sparse, std::int64_t values, const std::int64_t* inner,
                                std::size_t inner_count, const std::int64_t* outer, std::size_t outer_count) {
  if (sparse.dense_shape.size() != 2) refuse("CSR indices are for dense shapes of two extents");
  if (static_cast<std::int64_t>(inner_count) != values) {
    refuse("Expecting inner index size: " + std::to_string(inner_count) + " the same as values size: " + std::to_string(values));
  }
  const std::int64_t rows = sparse.dense_shape[0];
  if (outer_count != 0 && outer_count - 1 != static_cast<std::size_t>(rows)) {
    refuse("Outer index count must be rows + 1 or zero. Got: " + std::to_string(outer_count) + " rows: " + std::to_string(rows));
  }
  if (inner_count > 0) require(inner, "inner indices");
  if (outer_count > 0) require(outer, "outer indices");
  if ((outer_count == 0) != (inner_count == 0) && inner_count > 0)
    refuse("CSR indices need outer indices where there are values");
  for (std::size_t i = 0; i < inner_count; ++i) {
    if (inner[i] < 0 || inner[i] >= sparse.dense_shape[1])
      refuse("CSR inner index " + std::to_string(inner[i]) + " is not a column");
  }
  for (std::size_t i = 0; i < outer_count; ++i) {
    const std::int64_t least = i == 0 ? 0 : outer[i - 1];
    if (outer[i] < least || outer[i] > values) refuse("CSR outer indices must rise from 0 to the number of values");
  }
  std::vector<Tensor> made;
  made.push_back(copied(inner, {static_cast<std::int64_t>(inner_count)}));
  made.push_back(copied(outer, {static_cast<std::int64_t>(outer_count)}));
  return made;
}

// Places of blocks: [2, blocks], rows first.
std::vector<Tensor> block_indices(const SparseTensor& sparse, const std::int64_t* extents, std::size_t rank,
                                  const std::int32_t* indices) {
  Shape shape = shape_of(extents, rank);
  if (rank == 1 && shape[0] == 0) return {copied(indices, std::move(shape))};
  if (rank != 2 || shape[0] != 2) refuse("Indices shape must have dim[0] == 2 and two extents");
  if (sparse.values.rank() < 3 || sparse.values.shape()[0] != shape[1]) {
    refuse("block sparse values must have an extent for the blocks, which is that of the indices, and two or more of a block");
  }
  return {copied(indices, std::move(shape))};
}

// The three that copy and the three that borrow differ in where values and indices are. Indices are always copied here: they are
// small compared with the tensors of a session.
void fill(SparseTensor& sparse, OrtSparseFormat format, Tensor values, std::vector<Tensor> indices) {
  sparse.values = std::move(values);
  sparse.indices = std::move(indices);
  sparse.format = format;
}
SparseTensor& unfilled(OrtValue* value) {
  SparseTensor& sparse = sparse_of(value);
  if (sparse.format != ORT_SPARSE_UNDEFINED)
    refuse("Sparse format must not be set. Already contains format: " + std::to_string(sparse.format));
  return sparse;
}

OrtStatus* fill_coo(OrtValue* value, const OrtMemoryInfo*, const std::int64_t* extents, std::size_t rank, const void* data,
                    const std::int64_t* indices, std::size_t count) {
  return guarded([&] {
    SparseTensor& sparse = unfilled(value);
    Tensor values = copied_values(sparse.dtype, extents, rank, data);
    std::vector<Tensor> places = coo_indices(sparse, values.size(), indices, count);
    fill(sparse, ORT_SPARSE_COO, std::move(values), std::move(places));
  });
}
OrtStatus* fill_csr(OrtValue* value, const OrtMemoryInfo*, const std::int64_t* extents, std::size_t rank, const void* data,
                    const std::int64_t* inner, std::size_t inner_count, const std::int64_t* outer, std::size_t outer_count) {
  return guarded([&] {
    SparseTensor& sparse = unfilled(value);
    Tensor values = copied_values(sparse.dtype, extents, rank, data);
    std::vector<Tensor> places = csr_indices(sparse, values.size(), inner, inner_count, outer, outer_count);
    fill(sparse, ORT_SPARSE_CSRC, std::move(values), std::move(places));
  });
}
OrtStatus* fill_blocks(OrtValue* value, const OrtMemoryInfo*, const std::int64_t* extents, std::size_t rank, const void* data,
                       const std::int64_t* indices_extents, std::size_t indices_rank, const std::int32_t* indices) {
  return guarded([&] {
    SparseTensor& sparse = unfilled(value);
    SparseTensor made = sparse;
    made.values = copied_values(sparse.dtype, extents, rank, data);
    made.indices = block_indices(made, indices_extents, indices_rank, indices);
    made.format = ORT_SPARSE_BLOCK_SPARSE;
    sparse = std::move(made);
  });
}
OrtStatus* use_coo(OrtValue* value, std::int64_t* indices, std::size_t count) {
  return guarded([&] {
    SparseTensor& sparse = unfilled(value);
    fill(sparse, ORT_SPARSE_COO, sparse.values, coo_indices(sparse, sparse.values.size(), indices, count));
  });
}
OrtStatus* use_csr(OrtValue* value, std::int64_t* inner, std::size_t inner_count, std::int64_t* outer, std::size_t outer_count) {
  return guarded([&] {
    SparseTensor& sparse = unfilled(value);
    fill(sparse, ORT_SPARSE_CSRC, sparse.values,
         csr_indices(sparse, sparse.values.size(), inner, inner_count, outer, outer_count));
  });
}
OrtStatus* use_blocks(OrtValue* value, const std::int64_t* extents, std::size_t rank, std::int32_t* indices) {
  return guarded([&] {
    SparseTensor& sparse = unfilled(value);
    fill(sparse, ORT_SPARSE_BLOCK_SPARSE, sparse.values, block_indices(sparse, extents, rank, indices));
  });
}

OrtStatus* get_format(const OrtValue* value, OrtSparseFormat* out) {
  return guarded([&] { require(out, "out") = sparse_of(value).format; });
}

OrtTensorTypeAndShapeInfo* info_of(const Tensor& tensor) {
  return new OrtTensorTypeAndShapeInfo{element_of(tensor.dtype()), true, tensor.shape(), std::vector<std::string>(tensor.rank())};
}
OrtStatus* values_info(const OrtValue* value, OrtTensorTypeAndShapeInfo** out) {
  return guarded([&] {
    require(out, "out");
    *out = info_of(filled(value).values);
  });
}
OrtStatus* values_data(const OrtValue* value, const void** out) {
  return guarded([&] {
    const SparseTensor& sparse = filled(value);
    if (sparse.dtype == DataType::string) refuse("Use GetStringTensor*() API to retrieve strings");
    require(out, "out") = sparse.values.data();
  });
}

const Tensor& indices_of(const OrtValue* value, OrtSparseIndicesFormat format) {
  const SparseTensor& sparse = filled(value);
  OrtSparseFormat of = ORT_SPARSE_UNDEFINED;
  std::size_t which = 0;
  switch (format) {
    case ORT_SPARSE_COO_INDICES: of = ORT_SPARSE_COO; break;
    case ORT_SPARSE_CSR_INNER_INDICES: of = ORT_SPARSE_CSRC; break;
    case ORT_SPARSE_CSR_OUTER_INDICES: of = ORT_SPARSE_CSRC, which = 1; break;
    case ORT_SPARSE_BLOCK_SPARSE_INDICES: of = ORT_SPARSE_BLOCK_SPARSE; break;
    default: refuse("Unsupported indices_format passed");
  }
  if (of != sparse.format) refuse("Sparse Tensor does not contain indices of this format");
  return sparse.indices.at(which);
}
OrtStatus* indices_info(const OrtValue* value, OrtSparseIndicesFormat format, OrtTensorTypeAndShapeInfo** out) {
  return guarded([&] {
    require(out, "out");
    *out = info_of(indices_of(value, format));
  });
}
OrtStatus* indices_data(const OrtValue* value, OrtSparseIndicesFormat format, std::size_t* count, const void** out) {
  return guarded([&] {
    const Tensor& indices = indices_of(value, format);
    require(count, "num_indices") = static_cast<std::size_t>(indices.size());
    require(out, "indices") = indices.data();
  });
}

// The place of each value in the flat dense tensor.
std::vector<std::int64_t> flat_places(const SparseTensor& sparse) {
  std::vector<std::int64_t> places;
  if (sparse.format == ORT_SPARSE_COO) {
    const std::span<const std::int64_t> indices = sparse.indices[0].values<std::int64_t>();
    if (sparse.indices[0].rank() == 1) return {indices.begin(), indices.end()};
    for (std::size_t i = 0; i < indices.size(); i += 2) places.push_back(indices[i] * sparse.dense_shape[1] + indices[i + 1]);
  } else if (sparse.format == ORT_SPARSE_CSRC) {
    const auto inner = sparse.indices[0].values<std::int64_t>(), outer = sparse.indices[1].values<std::int64_t>();
    for (std::size_t row = 0; row + 1 < outer.size(); ++row) {
      for (std::int64_t i = outer[row]; i < outer[row + 1]; ++i) {
        places.push_back(static_cast<std::int64_t>(row) * sparse.dense_shape[1] + inner[static_cast<std::size_t>(i)]);
      }
    }
  }
  return places;
}

}  // namespace

Value engine_value(const OrtValue& value) {
  if (!value.sparse) return value.value;
  const SparseTensor& sparse = *value.sparse;
  if (sparse.format != ORT_SPARSE_COO && sparse.format != ORT_SPARSE_CSRC) {
    fail_ort(ORT_NOT_IMPLEMENTED, "sparse tensors of blocks, and those that were not filled, cannot be inputs of a session");
  }
  if (sparse.dtype == DataType::string || is_sub_byte(sparse.dtype)) {
    fail_ort(ORT_NOT_IMPLEMENTED, "sparse tensors of strings cannot be inputs of a session");
  }
  Tensor dense(sparse.dtype, sparse.dense_shape);
  if (dense.bytes() == 0) return dense;
  std::memset(dense.mutable_data(), 0, dense.bytes());
  const std::size_t size = byte_size(sparse.dtype, 1);
  const auto* from = static_cast<const char*>(sparse.values.data());
  auto* const to = static_cast<char*>(dense.mutable_data());
  for (const std::int64_t place : flat_places(sparse)) {
    std::memcpy(to + static_cast<std::size_t>(place) * size, from, size);
    from += size;
  }
  return dense;
}

OrtValue* make_sparse_value(const Tensor& dense) {
  const std::size_t size = byte_size(dense.dtype(), 1);
  if (dense.dtype() == DataType::string || is_sub_byte(dense.dtype())) {
    fail_ort(ORT_NOT_IMPLEMENTED, "an output of " + dense.type_string() + " cannot be a sparse tensor");
  }
  const auto* const from = static_cast<const char*>(dense.data());
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < dense.size(); ++i) {
    const char* const element = from + static_cast<std::size_t>(i) * size;
    if (std::any_of(element, element + size, [](char c) { return c != 0; })) places.push_back(i);
  }
  const Shape count{static_cast<std::int64_t>(places.size())};
  SparseTensor sparse = empty_sparse(dense.dtype(), dense.shape());
  sparse.format = ORT_SPARSE_COO;
  sparse.values = Tensor(dense.dtype(), count);
  sparse.indices.emplace_back(DataType::int64, count);
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::memcpy(static_cast<char*>(sparse.values.mutable_data()) + i * size, from + static_cast<std::size_t>(places[i]) * size,
                size);
    sparse.indices[0].mutable_values<std::int64_t>()[i] = places[i];
  }
  return make_sparse(std::move(sparse));
}

void fill_sparse(Table& table) {
  table.set(Slot::IsSparseTensor, &is_sparse);
  table.set(Slot::CreateSparseTensorAsOrtValue, &create);
  table.set(Slot::CreateSparseTensorWithValuesAsOrtValue, &create_with_values);
  table.set(Slot::FillSparseTensorCoo, &fill_coo);
  table.set(Slot::FillSparseTensorCsr, &fill_csr);
  table.set(Slot::FillSparseTensorBlockSparse, &fill_blocks);
  table.set(Slot::UseCooIndices, &use_coo);
  table.set(Slot::UseCsrIndices, &use_csr);
  table.set(Slot::UseBlockSparseIndices, &use_blocks);
  table.set(Slot::GetSparseTensorFormat, &get_format);
  table.set(Slot::GetSparseTensorValuesTypeAndShape, &values_info);
  table.set(Slot::GetSparseTensorValues, &values_data);
  table.set(Slot::GetSparseTensorIndicesTypeShape, &indices_info);
  table.set(Slot::GetSparseTensorIndices, &indices_data);
}

}  // namespace sdx::dropin
