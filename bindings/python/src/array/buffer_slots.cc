// Arrays as buffers (memoryview, NumPy), and buffers as arrays.

#include <algorithm>
#include <cstring>
#include <memory>

#include "../buffer.h"
#include "convert.h"
#include "let_go.h"

namespace sdx::python::arrays {
namespace {

// struct module's character for a type; null where it has none.
const char* format_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::boolean: return "?";
    case Dtype::int8: return "b";
    case Dtype::uint8: return "B";
    case Dtype::int16: return "h";
    case Dtype::uint16: return "H";
    case Dtype::int32: return "i";
    case Dtype::uint32: return "I";
    case Dtype::int64: return "q";
    case Dtype::uint64: return "Q";
    case Dtype::float16: return "e";
    case Dtype::float32: return "f";
    case Dtype::float64: return "d";
    case Dtype::complex64: return "Zf";
    case Dtype::complex128: return "Zd";
    default: return nullptr;
  }
}

// Whether the caller asks for column-major order, which arrays do not have.
bool wants_columns(int flags, const Shape& shape) {
  constexpr int kColumns = 0x0040 | PyBUF_STRIDES;  // PyBUF_F_CONTIGUOUS
  return (flags & kColumns) == kColumns && std::ranges::count_if(shape, [](std::int64_t d) { return d != 1; }) > 1;
}

// Keeps a view's memory alive.
struct Exported {
  Tensor tensor;
  std::vector<Py_ssize_t> shape, strides;
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  return guarded<int>(-1, [&] {
    const mx::array a = array_of(self);  // other threads may put another array into the handle meanwhile
    const Tensor& t = tensor_of(a);
    const char* format = format_of(t.dtype());
    const bool writable = is_alone(a);
    if (format == nullptr || ((flags & 0x0001) != 0 && !writable)) {
      PyErr_SetString(PyExc_BufferError, format == nullptr ? "bfloat16 has no format as a buffer"
                                                           : "the array's memory is shared: for reading only");
      return -1;
    }
    if (wants_columns(flags, t.shape())) {
      PyErr_SetString(PyExc_BufferError, "the array's elements are in rows, not in columns (PyBUF_F_CONTIGUOUS)");
      return -1;
    }
    auto held = std::make_unique<Exported>();
    held->tensor = t;
    held->shape.assign(t.shape().begin(), t.shape().end());
    held->strides.resize(t.rank());
    auto stride = static_cast<Py_ssize_t>(bit_width(t.dtype()) / 8);
    view->itemsize = stride;
    for (std::size_t i = t.rank(); i-- > 0;) {
      held->strides[i] = stride;
      stride *= held->shape[i];
    }
    static std::uint64_t nothing[2] = {};
    view->buf = t.size() == 0 ? static_cast<void*>(nothing) : const_cast<void*>(t.data());
    view->len = static_cast<Py_ssize_t>(t.bytes());
    view->readonly = writable ? 0 : 1;
    view->ndim = static_cast<int>(t.rank());
    view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format) : nullptr;
    view->shape = (flags & PyBUF_ND) != 0 ? held->shape.data() : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? held->strides.data() : nullptr;
    view->suboffsets = nullptr;
    view->internal = held.release();
    view->obj = Object::of(self).release();
    return 0;
  });
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Exported*>(view->internal); }

Dtype integer_type(Py_ssize_t size, bool is_signed) {
  switch (size) {
    case 1: return is_signed ? Dtype::int8 : Dtype::uint8;
    case 2: return is_signed ? Dtype::int16 : Dtype::uint16;
    case 4: return is_signed ? Dtype::int32 : Dtype::uint32;
    case 8: return is_signed ? Dtype::int64 : Dtype::uint64;
    default: return Dtype::undefined;
  }
}

// Native byte order only.
Dtype type_of(const Py_buffer& view) {
  std::string_view format = view.format != nullptr ? view.format : "B";
  if (!format.empty() && (format[0] == '@' || format[0] == '=' || format[0] == '<' || format[0] == '|')) format.remove_prefix(1);
  if (format == "Zf") return Dtype::complex64;
  if (format == "Zd") return Dtype::complex128;
  if (format.size() != 1) return Dtype::undefined;
  switch (format[0]) {
    case '?': return Dtype::boolean;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'n':
    case 'q': return integer_type(view.itemsize, true);
    case 'c':
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'N':
    case 'Q': return integer_type(view.itemsize, false);
    case 'e': return Dtype::float16;
    case 'f': return Dtype::float32;
    case 'd': return Dtype::float64;
    default: return Dtype::undefined;
  }
}

// Returns a buffer that is released together with the tensor, on any thread.
std::shared_ptr<void> hold(const Py_buffer& view) {
  const auto release = [](void* held) {
    PyBuffer_Release(static_cast<Py_buffer*>(held));
    delete static_cast<Py_buffer*>(held);
  };
  return {new Py_buffer(view), [release](void* held) { let_go_of(release, held); }};
}

// Types that NumPy knows by ml_dtypes have no format: their bits, by a view of the same array.
std::optional<mx::array> from_bfloat16(PyObject* object, bool copy) {
  if (PyObject_HasAttrString(object, "dtype") == 0 || PyObject_HasAttrString(object, "view") == 0) return std::nullopt;
  const Object dtype = Object::taken(PyObject_Str(Object::of(object).attribute("dtype").get()));
  if (to_text(dtype.get()) != "bfloat16") return std::nullopt;
  const Object bits = Object::of(object).attribute("view").call(text("uint16"));
  const auto as_bits = from_buffer(bits.get(), copy, true);
  if (!as_bits) return std::nullopt;
  const Tensor& t = as_bits->tensor();
  return mx::array(Tensor::view(t.data(), Dtype::bfloat16, t.shape(), std::make_shared<Tensor>(t)));
}

// float64 becomes float32, as in MLX.
Tensor narrowed(const Py_buffer& view, Dtype dtype, Shape shape) {
  const bool is_complex = dtype == Dtype::complex128;
  Tensor t(is_complex ? Dtype::complex64 : Dtype::float32, std::move(shape));
  const auto* in = static_cast<const double*>(view.buf);
  auto* out = static_cast<float*>(t.mutable_data());
  const std::int64_t count = t.size() * (is_complex ? 2 : 1);
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]);
  return t;
}

// A contiguous view; arrays of NumPy that have none are copied first.
bool open_view(PyObject* object, Py_buffer& view, bool may_copy) {
  if (PyObject_GetBuffer(object, &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) == 0) return true;
  PyErr_Clear();
  if (!may_copy || PyObject_HasAttrString(object, "__array_interface__") == 0) return false;
  const Object copied = Object::of(object).attribute("copy").call();
  if (PyObject_GetBuffer(copied.get(), &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) == 0) return true;
  PyErr_Clear();
  return false;
}

}  // namespace

std::optional<mx::array> from_buffer(PyObject* object, bool copy, bool keep_wide) {
  Py_buffer view{};
  if (!open_view(object, view, copy)) return from_bfloat16(object, copy);
  const std::shared_ptr<void> held = hold(view);
  const Dtype dtype = type_of(view);
  if (dtype == Dtype::undefined)
    raise_value_error("Cannot convert " + class_name(object) + " to an array: its elements are not numbers");
  Shape shape(view.shape, view.shape + view.ndim);
  if (!keep_wide && (dtype == Dtype::float64 || dtype == Dtype::complex128))
    return mx::array(narrowed(view, dtype, std::move(shape)));
  if (copy || view.len == 0) {
    Tensor t(dtype, std::move(shape));
    if (view.len != 0) std::memcpy(t.mutable_data(), view.buf, t.bytes());
    return mx::array(std::move(t));
  }
  return mx::array(Tensor::view(view.buf, dtype, std::move(shape), held).aligned());
}

std::vector<PyType_Slot> buffer_slots() {
  return {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
          {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_buffer)}};
}

}  // namespace sdx::python::arrays
