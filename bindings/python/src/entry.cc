#include "entry.h"

namespace sdx::python {

// Messages quote the model, whose names and attributes may be no text at all.
void raise(const Error& e) {
  const std::string_view said = e.what();
  const Object message =
      Object::taken(PyUnicode_DecodeUTF8(said.data(), static_cast<Py_ssize_t>(said.size()), "backslashreplace"));
  const Object make = Object::taken(PyImport_ImportModule("sardonyx._errors")).attribute("make");
  const Object made = make.call(text(name(e.code())), message);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.get())), made.get());
}

}  // namespace sdx::python
