#include "members.h"

#include "bind.h"
#include "dlpack.h"

namespace sdx::python::arrays {
namespace {

using Axes = std::optional<std::vector<int>>;
using Axis = std::optional<int>;

template <class Make>
PyObject* property(PyObject* self, const Make& make) {
  return guarded<PyObject*>(nullptr, [&] { return make(array_of(self)).release(); });
}

PyObject* shape(PyObject* self, void*) {
  return property(self, [](const mx::array& a) { return shape_tuple(a.shape()); });
}
PyObject* ndim(PyObject* self, void*) { return PyLong_FromLong(array_of(self).ndim()); }
PyObject* size(PyObject* self, void*) { return PyLong_FromLongLong(array_of(self).size()); }
PyObject* itemsize(PyObject* self, void*) { return PyLong_FromSize_t(array_of(self).itemsize()); }
PyObject* nbytes(PyObject* self, void*) { return PyLong_FromSize_t(array_of(self).nbytes()); }
PyObject* dtype(PyObject* self, void*) {
  return property(self, [](const mx::array& a) { return Object::of(dtype_object(a.dtype())); });
}
PyObject* transposed(PyObject* self, void*) {
  return property(self, [](const mx::array& a) { return wrap(mx::transpose(a)); });
}
PyObject* matrix_transposed(PyObject* self, void*) {
  return property(self, [](const mx::array& a) { return wrap(mx::matrix_transpose(a)); });
}
PyObject* real(PyObject* self, void*) {
  return property(self, [](const mx::array& a) { return wrap(mx::real(a)); });
}
PyObject* imag(PyObject* self, void*) {
  return property(self, [](const mx::array& a) { return wrap(mx::imag(a)); });
}

PyGetSetDef table[] = {{"shape", shape, nullptr, "Extents.", nullptr},
                       {"ndim", ndim, nullptr, "How many axes.", nullptr},
                       {"size", size, nullptr, "How many elements.", nullptr},
                       {"itemsize", itemsize, nullptr, "Bytes of one element.", nullptr},
                       {"nbytes", nbytes, nullptr, "Bytes of all elements.", nullptr},
                       {"dtype", dtype, nullptr, "Type of the elements.", nullptr},
                       {"T", transposed, nullptr, "Axes in reverse order.", nullptr},
                       {"mT", matrix_transposed, nullptr, "The last two axes exchanged.", nullptr},
                       {"real", real, nullptr, "Real parts.", nullptr},
                       {"imag", imag, nullptr, "Imaginary parts.", nullptr},
                       {nullptr, nullptr, nullptr, nullptr, nullptr}};

template <class T>
std::vector<T> several(const Rest& rest, T (*one)(PyObject*)) {
  std::vector<T> out;
  for (std::size_t i = 0; i < rest.count; ++i) out.push_back(one(rest.items[i]));
  return out;
}

// a.reshape(2, 3) and a.reshape((2, 3))
mx::array reshape(const mx::array& a, Rest shape, StreamOrDevice s) {
  if (shape.count == 1) return mx::reshape(a, to_shape(shape.items[0]), s);
  const std::vector<std::int64_t> extents = several<std::int64_t>(shape, to_integer);
  return mx::reshape(a, Shape(extents.begin(), extents.end()), s);
}

mx::array transpose(const mx::array& a, Rest axes, StreamOrDevice s) {
  if (axes.count == 0 || (axes.count == 1 && axes.items[0] == Py_None)) return mx::transpose(a, std::nullopt, s);
  if (axes.count == 1) return mx::transpose(a, to_ints(axes.items[0]), s);
  return mx::transpose(a, several<int>(axes, exact_int), s);
}

template <auto F>
mx::array spread(const mx::array& a, Axes axis, bool keepdims, int ddof, std::optional<int> correction, StreamOrDevice s) {
  return F(a, axis, keepdims, correction.value_or(ddof), s);
}

Object split(const mx::array& a, Any parts, int axis, StreamOrDevice s) {
  if (PyIndex_Check(parts.object)) return wrap_list(mx::split(a, exact_int(parts.object), axis, s));
  return wrap_list(mx::split(a, to_shape(parts.object), axis, s));
}

mx::array squeeze(const mx::array& a, const Axes& axis, StreamOrDevice s) { return mx::squeeze(a, axis, s); }
Object item_of(const mx::array& a) { return item(a); }
Object list_of_elements(const mx::array& a) { return to_list(a); }
mx::array itself(const mx::array& a) { return a; }
mx::array deep(const mx::array& a, Any) { return a; }

Object complex_of(const mx::array& a) {
  const Object builtin = Object::taken(PyImport_ImportModule("builtins")).attribute("complex");
  return builtin.call(item(a));
}

Object bytes_of(const mx::array& a) {
  const Tensor& t = tensor_of(a);
  return Object::taken(PyBytes_FromStringAndSize(static_cast<const char*>(t.data()), static_cast<Py_ssize_t>(t.bytes())));
}

Object dlpack(const mx::array& a, Any, Any max_version, Any device, std::optional<bool> copy) {
  if (device.object != Py_None && PyTuple_Check(device.object) != 0) {
    const std::vector<int> d = to_ints(device.object);
    if (d.size() != 2 || d[0] != 1 || d[1] != 0) {
      PyErr_SetString(PyExc_BufferError, "arrays can only be exported to DLPack's device (1, 0), the CPU");
      throw Raised();
    }
  }
  const bool versioned = max_version.object != Py_None && to_ints(max_version.object).at(0) >= 1;
  return to_dlpack(a, versioned, copy.value_or(false));
}

Object dlpack_device(const mx::array&) { return tuple(whole(1), whole(0)); }

std::vector<Definition> operations() {
  return {
      method<&reshape>("reshape(*shape, stream=None)"),
      method<&transpose>("transpose(*axes, stream=None)"),
      method<&mx::flatten>("flatten(start_axis=0, end_axis=-1, *, stream=None)"),
      method<&squeeze>("squeeze(axis=None, *, stream=None)"),
      method<&mx::abs>("abs(*, stream=None)"),
      method<&mx::square>("square(*, stream=None)"),
      method<&mx::sqrt>("sqrt(*, stream=None)"),
      method<&mx::rsqrt>("rsqrt(*, stream=None)"),
      method<&mx::reciprocal>("reciprocal(*, stream=None)"),
      method<&mx::exp>("exp(*, stream=None)"),
      method<&mx::log>("log(*, stream=None)"),
      method<&mx::log2>("log2(*, stream=None)"),
      method<&mx::log10>("log10(*, stream=None)"),
      method<&mx::log1p>("log1p(*, stream=None)"),
      method<&mx::sin>("sin(*, stream=None)"),
      method<&mx::cos>("cos(*, stream=None)"),
      method<&mx::all>("all(axis=None, keepdims=False, *, stream=None)"),
      method<&mx::any>("any(axis=None, keepdims=False, *, stream=None)"),
      method<&mx::sum>("sum(axis=None, keepdims=False, *, stream=None)"),
      method<&mx::prod>("prod(axis=None, keepdims=False, *, stream=None)"),
      method<&mx::min>("min(axis=None, keepdims=False, *, stream=None)"),
      method<&mx::max>("max(axis=None, keepdims=False, *, stream=None)"),
      method<&mx::mean>("mean(axis=None, keepdims=False, *, stream=None)"),
      method<&spread<&mx::var>>("var(axis=None, keepdims=False, ddof=0, *, correction=None, stream=None)"),
      method<&spread<&mx::std>>("std(axis=None, keepdims=False, ddof=0, *, correction=None, stream=None)"),
      method<&mx::logsumexp>("logsumexp(axis=None, keepdims=False, *, stream=None)"),
      method<&mx::argmin>("argmin(axis=None, keepdims=False, *, stream=None)"),
      method<&mx::argmax>("argmax(axis=None, keepdims=False, *, stream=None)"),
      method<&mx::cumsum>("cumsum(axis=None, *, reverse=False, inclusive=True, dtype=None, stream=None)"),
      method<&mx::cumprod>("cumprod(axis=None, *, reverse=False, inclusive=True, dtype=None, stream=None)"),
      method<&mx::cummax>("cummax(axis=None, *, reverse=False, inclusive=True, stream=None)"),
      method<&mx::cummin>("cummin(axis=None, *, reverse=False, inclusive=True, stream=None)"),
      method<&mx::logcumsumexp>("logcumsumexp(axis=None, *, reverse=False, inclusive=True, stream=None)"),
      method<&mx::moveaxis>("moveaxis(source, destination, *, stream=None)"),
      method<&mx::swapaxes>("swapaxes(axis1, axis2, *, stream=None)"),
      method<&split>("split(indices_or_sections, axis=0, *, stream=None)"),
      method<&mx::round>("round(decimals=0, *, stream=None)"),
      method<&mx::diagonal>("diagonal(offset=0, axis1=0, axis2=1, stream=None)"),
      method<&mx::diag>("diag(k=0, *, stream=None)"),
      method<&mx::conjugate>("conj(*, stream=None)"),
      method<&mx::view>("view(dtype, *, stream=None)"),
      method<&mx::astype>("astype(dtype, stream=None)"),
  };
}

std::vector<Definition> protocol() {
  return {
      method<&item_of>("item()"),
      method<&list_of_elements>("tolist()"),
      method<&itself>("__copy__()"),
      method<&deep>("__deepcopy__(memo)"),
      method<&complex_of>("__complex__()"),
      method<&bytes_of>("__bytes__()"),
      method<&dlpack>("__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)"),
      method<&dlpack_device>("__dlpack_device__()"),
  };
}

}  // namespace

PyGetSetDef* properties() { return table; }

PyMethodDef* methods() {
  std::vector<Definition> all = operations();
  for (const Definition& d : protocol()) all.push_back(d);
  return method_table(all);
}

}  // namespace sdx::python::arrays
