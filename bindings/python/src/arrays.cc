#include "arrays.h"

#include <memory>
#include <string>

#include "base/error.h"
#include "numpy.h"
#include "tensor/types.h"

namespace sdx::python {
namespace {

// struct module's format characters, native byte order; undefined for anything else.
DataType from_format(const Py_buffer& view) {
  std::string_view format = view.format != nullptr ? view.format : "B";
  if (!format.empty() && (format[0] == '@' || format[0] == '=' || format[0] == '<')) format.remove_prefix(1);
  if (format == "Zf") return DataType::complex64;
  if (format == "Zd") return DataType::complex128;
  if (format.size() != 1) return DataType::undefined;
  const auto integer = [&](bool is_signed) {
    switch (view.itemsize) {
      case 1: return is_signed ? DataType::int8 : DataType::uint8;
      case 2: return is_signed ? DataType::int16 : DataType::uint16;
      case 4: return is_signed ? DataType::int32 : DataType::uint32;
      case 8: return is_signed ? DataType::int64 : DataType::uint64;
      default: return DataType::undefined;
    }
  };
  switch (format[0]) {
    case '?': return DataType::boolean;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q': return integer(true);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q': return integer(false);
    case 'e': return DataType::float16;
    case 'f': return DataType::float32;
    case 'd': return DataType::float64;
    default: return DataType::undefined;
  }
}

std::string class_of(PyObject* object) {
  return to_text(Object::of(reinterpret_cast<PyObject*>(Py_TYPE(object))).attribute("__name__").get());
}

// "ValueError: could not …": takes the text of Python's error and clears the error.
std::string take_error() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Object held_type = Object::of(type), held = Object::of(value);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  if (!held) return "no reason given";
  return class_of(held.get()) + ": " + to_text(Object::taken(PyObject_Str(held.get())).get());
}

std::string text_of(PyObject* item, const char* name) {
  if (PyUnicode_Check(item) != 0) return to_text(item);
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_Check(item) != 0) {
    check(PyBytes_AsStringAndSize(item, &data, &size));
    return {data, static_cast<std::size_t>(size)};
  }
  fail(ErrorCode::invalid_argument, "input '{}': an element is {}, where text (str or bytes) is expected", name, class_of(item));
}

Shape shape_of(const Object& array) {
  const std::vector<std::int64_t> extents = to_list(array.attribute("shape").get(), to_integer);
  return Shape(extents.begin(), extents.end());
}

Tensor strings_of(const Object& array, const char* name) {
  Tensor t(DataType::string, shape_of(array));
  const auto out = t.mutable_values<std::string>();
  const Object items = array.attribute("ravel").call().attribute("tolist").call();
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = text_of(Object::taken(PySequence_GetItem(items.get(), static_cast<Py_ssize_t>(i))).get(), name);
  }
  return t;
}

// One element a byte to two or four.
Tensor pack(const void* bytes, DataType dtype, Shape shape) {
  Tensor t(dtype, std::move(shape));
  const int bits = bit_width(dtype);
  void* const out = t.mutable_data();
  const auto* in = static_cast<const std::uint8_t*>(bytes);
  std::fill_n(static_cast<std::uint8_t*>(out), t.bytes(), std::uint8_t{0});
  for (std::int64_t i = 0; i < t.size(); ++i) set_packed(out, bits, i, static_cast<std::uint8_t>(in[i] & ((1 << bits) - 1)));
  return t;
}

// Bits in place of a type that NumPy lacks.
bool carries(DataType carrier, DataType expected) {
  if (expected == DataType::bfloat16) return carrier == DataType::uint16;
  if (expected == DataType::int4 || expected == DataType::int2) return carrier == DataType::int8;
  return bit_width(expected) <= 8 && carrier == DataType::uint8 && expected != DataType::boolean && expected != DataType::int8;
}

Tensor view_of(const Py_buffer& view, DataType dtype) {
  Shape shape(view.shape, view.shape + view.ndim);
  if (is_sub_byte(dtype)) return pack(view.buf, dtype, std::move(shape));
  static const std::uint64_t kNothing = 0;  // exporters of no elements may have no address either
  return Tensor::view(view.buf != nullptr ? view.buf : &kNothing, dtype, std::move(shape));
}

Tensor array_to_tensor(const Object& array, const Expected& expected, Buffers& buffers) {
  if (const Py_buffer* view = buffers.get(array.get())) {
    DataType dtype = from_format(*view);
    if (dtype != DataType::undefined) {
      if (dtype != expected.dtype && carries(dtype, expected.dtype)) dtype = expected.dtype;
      return view_of(*view, dtype);
    }
  }
  const Object dtype = array.attribute("dtype");
  const std::string kind = to_text(dtype.attribute("kind").get());
  if (kind == "O" || kind == "U" || kind == "S" || kind == "T") return strings_of(array, expected.name);
  const std::string name = to_text(dtype.attribute("name").get());
  if (expected.dtype == DataType::string && name.starts_with("void")) return strings_of(array, expected.name);
  const DataType extension = extension_type(name);
  const Object plain =
      extension != DataType::undefined
          ? as_contiguous_array(array.get(), Object::none()).attribute("view").call(text(carrier_name(extension)))
          : as_contiguous_array(array.get(), dtype.attribute("newbyteorder").call(text("=")));
  const Py_buffer* view = buffers.get(plain.get());  // keeps `plain` alive
  const DataType found = view == nullptr                    ? DataType::undefined
                         : extension != DataType::undefined ? extension
                                                            : from_format(*view);
  if (found == DataType::undefined) {
    fail(ErrorCode::invalid_argument, "input '{}': arrays of {} cannot be passed to a model", expected.name, name);
  }
  return view_of(*view, found);
}

// The dtype that numbers, lists and their like become arrays of; none: NumPy's choice.
Object dtype_for(DataType expected) {
  if (expected == DataType::string) return text("object");
  if (expected == DataType::undefined) return Object::none();
  const Object dtype = extension_dtype(expected);
  return dtype.is_none() ? text(name(expected)) : dtype;
}

Tensor object_to_tensor(PyObject* object, const Expected& expected, Buffers& buffers) {
  if (is_array(object)) return array_to_tensor(Object::of(object), expected, buffers);
  Object array;
  try {
    const bool has_type =
        PyObject_HasAttrString(object, "dtype") != 0;  // an array of another library: its own type is what counts
    array = as_array(object, has_type ? Object::none() : dtype_for(expected.dtype));
  } catch (const Raised&) {
    fail(ErrorCode::invalid_argument, "input '{}': no array of {} can be made from {}: {}", expected.name,
         expected.dtype == DataType::undefined ? "numbers" : name(expected.dtype), class_of(object), take_error());
  }
  return array_to_tensor(array, expected, buffers);
}

std::int64_t to_key(PyObject* key, const Expected& expected) {
  try {
    return to_integer(key);
  } catch (const Raised&) {
    take_error();
    fail(ErrorCode::invalid_argument, "input '{}': Unexpected key type  <class '{}'>, it cannot be linked to C type int64_t",
         expected.name, class_of(key));
  }
}

Value to_map(PyObject* dict, const Expected& expected, Buffers& buffers) {
  const Object keys = Object::taken(PyDict_Keys(dict));
  const Py_ssize_t count = PyList_Size(keys.get());
  if (count == 0) fail(ErrorCode::invalid_argument, "input '{}': the type of an empty dict is not known", expected.name);
  const bool is_text = PyUnicode_Check(PyList_GetItem(keys.get(), 0)) != 0;
  Map map;
  map.keys = Tensor(is_text ? DataType::string : DataType::int64, {count});
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* key = PyList_GetItem(keys.get(), i);
    const auto at = static_cast<std::size_t>(i);
    if (is_text) {
      map.keys.mutable_values<std::string>()[at] = text_of(key, expected.name);
    } else {
      map.keys.mutable_values<std::int64_t>()[at] = to_key(key, expected);
    }
  }
  // Python's numbers are wide, maps of models narrow.
  Object values = numpy("array").call(Object::taken(PyDict_Values(dict)));
  const std::string kind = to_text(values.attribute("dtype").attribute("kind").get());
  if (kind == "f") values = values.attribute("astype").call(text("float32"));
  map.values = array_to_tensor(values, {expected.name}, buffers);
  return map;
}

Value to_sequence(PyObject* items, const Expected& expected, Buffers& buffers) {
  Sequence sequence;
  sequence.element_type = expected.dtype;
  const Py_ssize_t count = PySequence_Size(items);
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Object item = Object::taken(PySequence_GetItem(items, i));
    sequence.items.push_back(to_value(item.get(), {expected.name, expected.dtype, PyDict_Check(item.get()) == 0}, buffers));
    const Value& last = sequence.items.back();
    if (last.is_tensor()) sequence.element_type = last.tensor().dtype();
  }
  return sequence;
}

Object texts_to_python(const Tensor& t) {
  return list_of(t.values<std::string>(), [](const std::string& s) { return text(s); });
}

Object shape_to_python(const Shape& shape) {
  Object extents = Object::taken(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  Py_ssize_t i = 0;
  for (const std::int64_t d : shape) check(PyTuple_SetItem(extents.get(), i++, number(d).release()));
  return extents;
}

Object strings_to_python(const Tensor& t) {
  const Object items = texts_to_python(t);
  const Object array = numpy("empty").call(number(t.size()), text("object"));
  const Object all = Object::taken(PySlice_New(nullptr, nullptr, nullptr));
  check(PyObject_SetItem(array.get(), all.get(), items.get()));
  return array.attribute("reshape").call(shape_to_python(t.shape()));
}

// Keeps a tensor alive for NumPy's arrays, and lends its memory as a buffer.
struct Memory {
  PyObject_HEAD Tensor* tensor;
};

PyTypeObject* memory_type = nullptr;

int get_memory(PyObject* self, Py_buffer* view, int flags) {
  static std::uint64_t nothing = 0;
  if (reinterpret_cast<Memory*>(self)->tensor == nullptr) {  // whoever digs the type out can make one
    PyErr_SetString(PyExc_BufferError, "no tensor");
    view->obj = nullptr;
    return -1;
  }
  const Tensor& t = *reinterpret_cast<Memory*>(self)->tensor;
  void* data = t.size() == 0 ? static_cast<void*>(&nothing) : const_cast<void*>(t.data());
  return PyBuffer_FillInfo(view, self, data, static_cast<Py_ssize_t>(t.bytes()), 0, flags);
}

void free_memory(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<Memory*>(self)->tensor;
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

Object memory_of(const Tensor& t) {
  auto held = std::make_unique<Tensor>(t);
  auto* memory = PyObject_New(Memory, memory_type);
  if (memory == nullptr) throw Raised();
  memory->tensor = held.release();
  return Object::taken(reinterpret_cast<PyObject*>(memory));
}

// One byte for each element of a type that is less.
Tensor unpack(const Tensor& t) {
  const bool is_signed = t.dtype() == DataType::int4 || t.dtype() == DataType::int2;
  const int bits = bit_width(t.dtype());
  Tensor bytes(is_signed ? DataType::int8 : DataType::uint8, t.shape());
  auto* out = static_cast<std::uint8_t*>(bytes.mutable_data());
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const std::uint8_t element = get_packed(t.data(), bits, i);
    out[i] = is_signed ? static_cast<std::uint8_t>(sign_extend(element, bits)) : element;
  }
  return bytes;
}

Object tensor_to_python(const Tensor& t) {
  if (t.dtype() == DataType::string) return strings_to_python(t);
  const Object shape = shape_to_python(t.shape()), memory = memory_of(is_sub_byte(t.dtype()) ? unpack(t) : t);
  return Object::of(ndarray()).call(shape, Object::of(array_dtype(t.dtype())), memory);
}

// Without an array in between, which takes 2 us more, for the types that classifiers have.
Object list_to_python(const Tensor& t) {
  if (t.dtype() == DataType::string) return texts_to_python(t);
  if (t.dtype() == DataType::int64) return list_of(t.values<std::int64_t>(), [](std::int64_t v) { return number(v); });
  if (t.dtype() == DataType::float32) {
    return list_of(t.values<float>(), [](float v) { return number(static_cast<double>(v)); });
  }
  return tensor_to_python(t.clone()).attribute("tolist").call();
}

// Keys and values of maps are plain Python numbers and text, as users of classifiers expect.
Object map_to_python(const Map& map) {
  const Object keys = list_to_python(map.keys), values = list_to_python(map.values);
  const Object out = new_dict();
  const Py_ssize_t count = PyList_Size(keys.get());
  for (Py_ssize_t i = 0; i < count; ++i) {
    check(PyDict_SetItem(out.get(), PyList_GetItem(keys.get(), i), Object::taken(PySequence_GetItem(values.get(), i)).get()));
  }
  return out;
}

}  // namespace

const Py_buffer* Buffers::get(PyObject* object) {
  Py_buffer& view = views_.emplace_back();
  if (PyObject_GetBuffer(object, &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) == 0) return &view;
  PyErr_Clear();
  views_.pop_back();
  return nullptr;
}

Value to_value(PyObject* object, const Expected& expected, Buffers& buffers) {
  if (object == Py_None) return {};
  if (PyDict_Check(object) != 0) return to_map(object, expected, buffers);
  const bool is_list = PyList_Check(object) != 0 || PyTuple_Check(object) != 0;
  if (is_list && !expected.is_tensor) return to_sequence(object, expected, buffers);
  return object_to_tensor(object, expected, buffers);
}

Tensor to_memory(PyObject* array, const char* name, Buffers& buffers) {
  const Py_buffer* view = buffers.get(array);
  const DataType dtype = view == nullptr || view->readonly != 0 ? DataType::undefined : from_format(*view);
  if (dtype == DataType::undefined) {
    fail(ErrorCode::invalid_argument, "output '{}': expected a contiguous, writable array of numbers, received {}", name,
         class_of(array));
  }
  return Tensor::view_mutable(view->buf, dtype, Shape(view->shape, view->shape + view->ndim));
}

Object to_python(const Value& value) {
  if (value.empty()) return Object::none();
  if (value.is_tensor()) {
    const Tensor& t = value.tensor();
    return tensor_to_python(t.owner().use_count() == 1 && t.writable() ? t : t.clone());
  }
  if (value.is_map()) return map_to_python(value.map());
  return list_of(value.sequence().items, [](const Value& item) { return to_python(item); });
}

void prepare_memory_type() {
  if (memory_type != nullptr) return;
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_memory)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(&free_memory)},
                                {0, nullptr}};
  static PyType_Spec spec{"sardonyx._sardonyx.Memory", sizeof(Memory), 0, Py_TPFLAGS_DEFAULT, slots};
  memory_type = reinterpret_cast<PyTypeObject*>(Object::taken(PyType_FromSpec(&spec)).release());
}

}  // namespace sdx::python
