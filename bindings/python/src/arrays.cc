#include "arrays.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "base/error.h"
#include "tensor/types.h"

namespace nb = nanobind;

namespace sdx::python {
namespace {

// NumPy's names of the types that only ml_dtypes has.
struct ExtensionType {
  DataType dtype;
  const char* name;
};
constexpr std::array kExtensionTypes = {
    ExtensionType{DataType::bfloat16, "bfloat16"},
    ExtensionType{DataType::float8e4m3fn, "float8_e4m3fn"},
    ExtensionType{DataType::float8e4m3fnuz, "float8_e4m3fnuz"},
    ExtensionType{DataType::float8e5m2, "float8_e5m2"},
    ExtensionType{DataType::float8e5m2fnuz, "float8_e5m2fnuz"},
    ExtensionType{DataType::float8e8m0, "float8_e8m0fnu"},
    ExtensionType{DataType::float4e2m1, "float4_e2m1fn"},
    ExtensionType{DataType::float6e2m3, "float6_e2m3fn"},
    ExtensionType{DataType::float6e3m2, "float6_e3m2fn"},
    ExtensionType{DataType::int4, "int4"},
    ExtensionType{DataType::uint4, "uint4"},
    ExtensionType{DataType::int2, "int2"},
    ExtensionType{DataType::uint2, "uint2"},
};

// What make() imports, kept from the first time on and never released: the module may outlive the interpreter's tidying up. Not a
// local static: importing may hand the interpreter to another thread, which would wait for the static while it holds the
// interpreter. So two threads may both import, and the first one's is kept.
template <class T, class Make>
const T& imported(std::atomic<const T*>& kept, const Make& make) {
  if (const T* got = kept.load()) return *got;
  std::unique_ptr<const T> made = make();
  const T* got = nullptr;
  return kept.compare_exchange_strong(got, made.get()) ? *made.release() : *got;
}

struct NumPy {
  nb::object module, ndarray;
};

const NumPy& numpy() {
  static std::atomic<const NumPy*> kept;
  return imported(kept, [] {
    auto n = std::make_unique<NumPy>();
    n->module = nb::module_::import_("numpy");
    n->ndarray = n->module.attr("ndarray");
    return n;
  });
}

// Only for types that it alone has: importing it takes 7 to 10 ms, as much as a small model's start. None where it is not
// installed.
const nb::object& ml_dtypes() {
  static std::atomic<const nb::object*> kept;
  return imported(kept, [] {
    try {
      return std::make_unique<nb::object>(nb::module_::import_("ml_dtypes"));
    } catch (nb::python_error&) {  // an optional package
      return std::make_unique<nb::object>(nb::none());
    }
  });
}

DataType extension_type(std::string_view name) {
  for (const ExtensionType& t : kExtensionTypes) {
    if (name == t.name) return t.dtype;
  }
  return DataType::undefined;
}

// The dtype object of ml_dtypes, or none.
nb::object extension_dtype(DataType dtype) {
  for (const ExtensionType& t : kExtensionTypes) {
    if (t.dtype != dtype) continue;
    return ml_dtypes().is_none() ? nb::object(nb::none()) : nb::getattr(ml_dtypes(), t.name, nb::none());
  }
  return nb::none();
}

// Unpacked elements of less than a byte are signed bytes for the signed integers, else unsigned ones.
const char* carrier_name(DataType dtype) {
  if (dtype == DataType::bfloat16) return "uint16";
  return dtype == DataType::int4 || dtype == DataType::int2 ? "int8" : "uint8";
}

std::string class_of(nb::handle object) { return nb::cast<std::string>(nb::str(object.type().attr("__name__"))); }

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

std::string text_of(nb::handle item, const char* name) {
  if (PyUnicode_Check(item.ptr()) != 0) return nb::cast<std::string>(item);
  if (PyBytes_Check(item.ptr()) != 0)
    return {PyBytes_AS_STRING(item.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(item.ptr()))};
  fail(ErrorCode::invalid_argument, "input '{}': an element is {}, where text (str or bytes) is expected", name, class_of(item));
}

Shape shape_of(nb::handle array) {
  Shape shape;
  for (nb::handle extent : array.attr("shape")) shape.push_back(nb::cast<std::int64_t>(extent));
  return shape;
}

Tensor strings_of(nb::handle array, const char* name) {
  Tensor t(DataType::string, shape_of(array));
  const auto out = t.mutable_values<std::string>();
  std::size_t i = 0;
  for (nb::handle item : nb::list(array.attr("ravel")().attr("tolist")())) out[i++] = text_of(item, name);
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

Tensor array_to_tensor(nb::handle array, const Expected& expected, Buffers& buffers) {
  if (const Py_buffer* view = buffers.get(array)) {
    DataType dtype = from_format(*view);
    if (dtype != DataType::undefined) {
      if (dtype != expected.dtype && carries(dtype, expected.dtype)) dtype = expected.dtype;
      return view_of(*view, dtype);
    }
  }
  const nb::object dtype = array.attr("dtype");
  const auto kind = nb::cast<std::string>(dtype.attr("kind"));
  if (kind == "O" || kind == "U" || kind == "S" || kind == "T") return strings_of(array, expected.name);
  const auto name = nb::cast<std::string>(dtype.attr("name"));
  const DataType extension = extension_type(name);
  nb::object plain;
  if (extension != DataType::undefined) {
    plain = numpy().module.attr("asarray")(array, nb::arg("order") = "C");
    plain = plain.attr("view")(carrier_name(extension));
  } else {
    plain = numpy().module.attr("asarray")(array, nb::arg("dtype") = dtype.attr("newbyteorder")("="), nb::arg("order") = "C");
  }
  const Py_buffer* view = buffers.get(plain);  // keeps `plain` alive
  const DataType found = view == nullptr                    ? DataType::undefined
                         : extension != DataType::undefined ? extension
                                                            : from_format(*view);
  if (found == DataType::undefined) {
    fail(ErrorCode::invalid_argument, "input '{}': arrays of {} cannot be passed to a model", expected.name, name);
  }
  return view_of(*view, found);
}

Tensor object_to_tensor(nb::handle object, const Expected& expected, Buffers& buffers) {
  if (nb::isinstance(object, numpy().ndarray)) return array_to_tensor(object, expected, buffers);
  nb::object dtype = nb::none();
  if (expected.dtype == DataType::string) {
    dtype = nb::str("object");
  } else if (expected.dtype != DataType::undefined) {
    dtype = extension_dtype(expected.dtype);
    if (dtype.is_none()) dtype = nb::str(std::string(name(expected.dtype)).c_str());
  }
  nb::object array;
  try {
    const bool has_type = nb::hasattr(object, "dtype");  // an array of another library: its own type is what counts
    array = numpy().module.attr("asarray")(object, nb::arg("dtype") = has_type ? nb::object(nb::none()) : dtype);
  } catch (nb::python_error& e) {
    fail(ErrorCode::invalid_argument, "input '{}': no array of {} can be made from {}: {}", expected.name,
         expected.dtype == DataType::undefined ? "numbers" : name(expected.dtype), class_of(object), e.what());
  }
  return array_to_tensor(array, expected, buffers);
}

Value to_map(nb::dict dict, const Expected& expected, Buffers& buffers) {
  if (dict.size() == 0) fail(ErrorCode::invalid_argument, "input '{}': the type of an empty dict is not known", expected.name);
  const bool text = PyUnicode_Check((*dict.begin()).first.ptr()) != 0;
  Map map;
  map.keys = Tensor(text ? DataType::string : DataType::int64, {static_cast<std::int64_t>(dict.size())});
  std::size_t i = 0;
  for (auto [key, value] : dict) {
    if (text) {
      map.keys.mutable_values<std::string>()[i++] = text_of(key, expected.name);
    } else {
      map.keys.mutable_values<std::int64_t>()[i++] = nb::cast<std::int64_t>(key);
    }
  }
  // Python's numbers are wide, maps of models narrow.
  nb::object values = numpy().module.attr("array")(nb::list(dict.attr("values")()));
  const auto kind = nb::cast<std::string>(values.attr("dtype").attr("kind"));
  if (kind == "f") values = values.attr("astype")("float32");
  map.values = array_to_tensor(values, {expected.name}, buffers);
  return map;
}

Value to_sequence(nb::handle items, const Expected& expected, Buffers& buffers) {
  Sequence sequence;
  sequence.element_type = expected.dtype;
  for (nb::handle item : items) {
    sequence.items.push_back(to_value(item, {expected.name, expected.dtype, !PyDict_Check(item.ptr())}, buffers));
    const Value& last = sequence.items.back();
    if (last.is_tensor()) sequence.element_type = last.tensor().dtype();
  }
  return sequence;
}

nb::list texts_to_python(const Tensor& t) {
  nb::list items;
  for (const std::string& s : t.values<std::string>()) {
    items.append(nb::steal(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "surrogateescape")));
  }
  return items;
}

nb::object strings_to_python(const Tensor& t) {
  const nb::list items = texts_to_python(t);
  nb::list shape;
  for (const std::int64_t d : t.shape()) shape.append(d);
  nb::object array = numpy().module.attr("empty")(nb::len(items), nb::arg("dtype") = "object");
  array[nb::slice(nb::none(), nb::none(), nb::none())] = items;
  return array.attr("reshape")(nb::tuple(shape));
}

nb::dlpack::dtype dlpack_type(DataType dtype) {
  using Code = nb::dlpack::dtype_code;
  const auto bits = static_cast<std::uint8_t>(bit_width(dtype));
  const auto make = [&](Code code) { return nb::dlpack::dtype{static_cast<std::uint8_t>(code), bits, 1}; };
  if (dtype == DataType::boolean) return make(Code::Bool);
  if (dtype == DataType::complex64 || dtype == DataType::complex128) return make(Code::Complex);
  if (dtype == DataType::float16 || dtype == DataType::float32 || dtype == DataType::float64) return make(Code::Float);
  const bool is_signed =
      dtype == DataType::int8 || dtype == DataType::int16 || dtype == DataType::int32 || dtype == DataType::int64;
  return make(is_signed ? Code::Int : Code::UInt);
}

nb::object tensor_to_python(Tensor t) {
  if (t.dtype() == DataType::string) return strings_to_python(t);
  const DataType dtype = t.dtype();
  if (is_sub_byte(dtype) || dtype == DataType::float6e2m3 || dtype == DataType::float6e3m2) {
    const bool is_signed = dtype == DataType::int4 || dtype == DataType::int2;
    const int bits = bit_width(dtype);
    Tensor bytes(is_signed ? DataType::int8 : DataType::uint8, t.shape());
    auto* out = static_cast<std::uint8_t*>(bytes.mutable_data());
    for (std::int64_t i = 0; i < t.size(); ++i) {
      const std::uint8_t element =
          is_sub_byte(dtype) ? get_packed(t.data(), bits, i) : static_cast<const std::uint8_t*>(t.data())[i];
      out[i] = is_signed ? static_cast<std::uint8_t>(sign_extend(element, bits)) : element;
    }
    t = bytes;
  }
  auto* held = new Tensor(t);
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<Tensor*>(p); });
  std::vector<std::size_t> shape(t.shape().begin(), t.shape().end());
  static std::uint64_t nothing = 0;
  void* data = t.size() == 0 ? static_cast<void*>(&nothing) : const_cast<void*>(t.data());
  nb::object array = nb::cast(nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), owner, nullptr, dlpack_type(t.dtype())));
  const nb::object extension = extension_dtype(dtype);
  return extension.is_none() ? array : array.attr("view")(extension);
}

// Without an array in between, which takes 2 us more, for the types that classifiers have.
nb::list list_to_python(const Tensor& t) {
  if (t.dtype() == DataType::string) return texts_to_python(t);
  nb::list out;
  if (t.dtype() == DataType::int64) {
    for (const std::int64_t v : t.values<std::int64_t>()) out.append(nb::int_(v));
  } else if (t.dtype() == DataType::float32) {
    for (const float v : t.values<float>()) out.append(nb::float_(static_cast<double>(v)));
  } else {
    out = nb::list(tensor_to_python(t.clone()).attr("tolist")());
  }
  return out;
}

// Keys and values of maps are plain Python numbers and text, as users of classifiers expect.
nb::object map_to_python(const Map& map) {
  const nb::list keys = list_to_python(map.keys), values = list_to_python(map.values);
  nb::dict out;
  for (std::size_t i = 0; i < nb::len(keys); ++i) out[keys[i]] = values[i];
  return out;
}

}  // namespace

const Py_buffer* Buffers::get(nb::handle object) {
  Py_buffer& view = views_.emplace_back();
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) == 0) return &view;
  PyErr_Clear();
  views_.pop_back();
  return nullptr;
}

Value to_value(nb::handle object, const Expected& expected, Buffers& buffers) {
  if (object.is_none()) return {};
  if (PyDict_Check(object.ptr()) != 0) return to_map(nb::borrow<nb::dict>(object), expected, buffers);
  const bool is_list = PyList_Check(object.ptr()) != 0 || PyTuple_Check(object.ptr()) != 0;
  if (is_list && !expected.is_tensor) return to_sequence(object, expected, buffers);
  return object_to_tensor(object, expected, buffers);
}

nb::object to_python(const Value& value) {
  if (value.empty()) return nb::none();
  if (value.is_tensor()) {
    const Tensor& t = value.tensor();
    return tensor_to_python(t.owner().use_count() == 1 && t.writable() ? t : t.clone());
  }
  if (value.is_map()) return map_to_python(value.map());
  nb::list items;
  for (const Value& item : value.sequence().items) items.append(to_python(item));
  return items;
}

}  // namespace sdx::python
