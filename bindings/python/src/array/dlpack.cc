#include "dlpack.h"

#include <cstring>
#include <memory>

#include "let_go.h"

namespace sdx::python::arrays {
namespace {

// dlpack.h, version 1.1.
struct DlDevice {
  std::int32_t type;
  std::int32_t id;
};
struct DlType {
  std::uint8_t code;  // 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  std::int32_t ndim;
  DlType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // of elements; null: rows first
  std::uint64_t byte_offset;
};
struct Managed {
  DlTensor tensor;
  void* context;
  void (*deleter)(Managed*);
};
struct Versioned {
  std::uint32_t major;
  std::uint32_t minor;
  void* context;
  void (*deleter)(Versioned*);
  std::uint64_t flags;
  DlTensor tensor;
};
constexpr std::uint64_t kReadOnly = 1;
constexpr std::uint64_t kCopied = 2;
constexpr std::int32_t kCpu = 1;
constexpr std::int32_t kMostAxes = 64;

// Owns what an exported capsule refers to.
struct Held {
  Tensor tensor;
  std::vector<std::int64_t> shape, strides;
};

DlType type_of(Dtype dtype) {
  const auto bits = static_cast<std::uint8_t>(bit_width(dtype));
  if (dtype == Dtype::boolean) return {6, 8, 1};
  if (dtype == Dtype::bfloat16) return {4, 16, 1};
  if (dtype == Dtype::complex64 || dtype == Dtype::complex128) return {5, bits, 1};
  if (is_floating(dtype)) return {2, bits, 1};
  return {static_cast<std::uint8_t>(name(dtype)[0] == 'u' ? 1 : 0), bits, 1};
}

Dtype type_from(const DlType& t) {
  if (t.lanes == 1) {
    for (int i = 1; i < kDataTypeCount; ++i) {
      const auto dtype = static_cast<Dtype>(i);
      if (dtype == Dtype::string || is_sub_byte(dtype) || (is_floating(dtype) && bit_width(dtype) <= 8)) continue;
      const DlType d = type_of(dtype);
      if (d.code == t.code && d.bits == t.bits) return dtype;
    }
  }
  PyErr_Format(PyExc_BufferError, "elements of DLPack's type %d with %d bits and %d lanes are not supported", t.code, t.bits,
               t.lanes);
  throw Raised();
}

DlTensor describe(Held& held) {
  const Tensor& t = held.tensor;
  held.shape.assign(t.shape().begin(), t.shape().end());
  held.strides.resize(held.shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = held.shape.size(); i-- > 0;) {
    held.strides[i] = stride;
    stride *= held.shape[i];
  }
  return {const_cast<void*>(t.data()), {kCpu, 0}, static_cast<std::int32_t>(t.rank()), type_of(t.dtype()), held.shape.data(),
          held.strides.data(),         0};
}

template <class M>
void let_go(M* managed) {
  delete static_cast<Held*>(managed->context);
  delete managed;
}

// Frees capsules that nobody consumed.
template <class M>
void drop(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}
void drop_plain(PyObject* capsule) { drop<Managed>(capsule, "dltensor"); }
void drop_versioned(PyObject* capsule) { drop<Versioned>(capsule, "dltensor_versioned"); }

// Copies elements with arbitrary strides into row-major order.
Tensor gathered(const DlTensor& d, Dtype dtype, const Shape& shape) {
  Tensor t(dtype, shape);
  const auto size = static_cast<std::size_t>(bit_width(dtype)) / 8;
  const auto* from = static_cast<const char*>(d.data) + d.byte_offset;
  auto* to = static_cast<char*>(t.mutable_data());
  std::vector<std::int64_t> at(shape.size(), 0);
  for (std::int64_t n = 0; n < t.size(); ++n) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < at.size(); ++i) offset += at[i] * d.strides[i];
    std::memcpy(to + static_cast<std::size_t>(n) * size, from + offset * static_cast<std::int64_t>(size), size);
    for (std::size_t i = at.size(); i-- > 0 && ++at[i] == shape[i];) at[i] = 0;
  }
  return t;
}

bool in_rows(const DlTensor& d, const Shape& shape) {
  if (d.strides == nullptr) return true;
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && d.strides[i] != stride) return false;
    stride *= shape[i];
  }
  return true;
}

mx::array take(const DlTensor& d, std::shared_ptr<void> owner, std::optional<bool> copy) {
  if (d.device.type != kCpu) {
    PyErr_Format(PyExc_BufferError, "the array is on DLPack's device %d: only the CPU's memory (1) can be taken", d.device.type);
    throw Raised();
  }
  if (d.ndim < 0 || d.ndim > kMostAxes) raise_value_error("from_dlpack(): too many axes");
  const Dtype dtype = type_from(d.dtype);
  const Shape shape(d.shape, d.shape + d.ndim);
  if (element_count(shape) == 0) return mx::array(Tensor(dtype, shape));
  if (!in_rows(d, shape)) {
    if (copy && !*copy) raise_value_error("from_dlpack(): elements are not in rows, so a copy cannot be avoided");
    return mx::array(gathered(d, dtype, shape));
  }
  const Tensor view = Tensor::view(static_cast<const char*>(d.data) + d.byte_offset, dtype, shape, std::move(owner));
  return mx::array(copy.value_or(false) ? view.clone() : view.aligned());
}

// The tensor in a capsule, with its deleter. Deleters of other libraries may need the GIL.
template <class M>
std::pair<M*, std::shared_ptr<void>> taken(PyObject* capsule, const char* name, const char* used) {
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
  if (managed == nullptr || PyCapsule_SetName(capsule, used) != 0) throw Raised();
  const auto release = [](void* held) {
    auto* m = static_cast<M*>(held);
    if (m->deleter != nullptr) m->deleter(m);
  };
  return {managed, std::shared_ptr<void>(managed, [release](void* held) { let_go_of(release, held); })};
}

}  // namespace

Object to_dlpack(const mx::array& value, bool versioned, bool copied) {
  const bool writable = !copied && is_alone(value);
  auto held = std::make_unique<Held>();
  held->tensor = copied ? tensor_of(value).clone() : tensor_of(value);
  const DlTensor described = describe(*held);
  if (versioned) {
    const std::uint64_t flags = copied ? kCopied : writable ? 0 : kReadOnly;
    auto made = std::make_unique<Versioned>(Versioned{1, 0, nullptr, &let_go<Versioned>, flags, described});
    made->context = held.release();
    return Object::taken(PyCapsule_New(made.release(), "dltensor_versioned", &drop_versioned));
  }
  auto made = std::make_unique<Managed>(Managed{described, held.release(), &let_go<Managed>});
  return Object::taken(PyCapsule_New(made.release(), "dltensor", &drop_plain));
}

mx::array from_dlpack(PyObject* capsule, std::optional<bool> copy) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned") != 0) {
    auto [managed, owner] = taken<Versioned>(capsule, "dltensor_versioned", "used_dltensor_versioned");
    if (managed->major != 1) raise_value_error("from_dlpack(): DLPack of another version than 1");
    return take(managed->tensor, owner, copy);
  }
  if (PyCapsule_IsValid(capsule, "dltensor") == 0) raise_type_error("from_dlpack(): __dlpack__() gave no DLPack tensor");
  auto [managed, owner] = taken<Managed>(capsule, "dltensor", "used_dltensor");
  return take(managed->tensor, owner, copy);
}

}  // namespace sdx::python::arrays
