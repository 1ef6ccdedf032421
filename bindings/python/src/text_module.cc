// The compiled half of sardonyx.text: a library of its own, so that `import sardonyx` loads nothing of it.

#include <memory>
#include <sdx/error.hpp>
#include <sdx/tokenizer.hpp>

#include "object.h"

namespace sdx::python {
namespace {

struct TokenizerObject {
  PyObject_HEAD Tokenizer* value;
};
PyTypeObject* tokenizer_type = nullptr;

const Tokenizer& tokenizer_of(PyObject* self) {
  if (PyObject_TypeCheck(self, tokenizer_type) == 0 || reinterpret_cast<TokenizerObject*>(self)->value == nullptr) {
    PyErr_SetString(PyExc_TypeError, "not an object that this module made");
    throw Raised();
  }
  return *reinterpret_cast<TokenizerObject*>(self)->value;
}

void free_tokenizer(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<TokenizerObject*>(self)->value;
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

// One of the exception classes of sardonyx/_errors.py, which chooses by the code's name.
void raise(const Error& e) {
  const Object make = Object::taken(PyImport_ImportModule("sardonyx._errors")).attribute("make");
  const Object made = make.call(text(name(e.code())), text(e.what()));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.get())), made.get());
}

template <auto Function>
PyObject* entry(PyObject* self, PyObject* arguments) noexcept {
  try {
    try {
      return Function(self, arguments).release();
    } catch (const Error& e) {
      raise(e);
    }
  } catch (const Raised&) {  // by Python
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

PyObject* argument(PyObject* arguments, Py_ssize_t i) {
  PyObject* item = PyTuple_GetItem(arguments, i);
  if (item == nullptr) throw Raised();
  return item;
}

std::vector<std::uint32_t> to_ids(PyObject* object) {
  const Object iterator = Object::taken(PyObject_GetIter(object));
  std::vector<std::uint32_t> ids;
  while (PyObject* next = PyIter_Next(iterator.get())) {
    const Object held = Object::taken(next);
    const Object whole = Object::taken(PyNumber_Index(held.get()));
    const unsigned long long id = PyLong_AsUnsignedLongLong(whole.get());
    if (PyErr_Occurred() != nullptr) throw Raised();
    if (id > 0xFFFFFFFFULL) {
      PyErr_Format(PyExc_ValueError, "%llu is too large for a token's number", id);
      throw Raised();
    }
    ids.push_back(static_cast<std::uint32_t>(id));
  }
  if (PyErr_Occurred() != nullptr) throw Raised();
  return ids;
}

Object load(PyObject*, PyObject* arguments) {
  const std::string path = to_text(argument(arguments, 0));
  auto made = unlocked([&] { return std::make_unique<Tokenizer>(Tokenizer::load(path)); });
  auto* instance = PyObject_New(TokenizerObject, tokenizer_type);
  if (instance == nullptr) throw Raised();
  instance->value = made.release();
  return Object::taken(reinterpret_cast<PyObject*>(instance));
}

template <class T>
Object whole(T v) {
  return number(static_cast<std::int64_t>(v));
}

Object range(const TextRange& r) { return tuple(whole(r.begin), whole(r.end)); }

Object encoding_to_python(const Encoding& e) {
  Object dict = new_dict();
  set(dict, "ids", list_of(e.ids, whole<std::uint32_t>));
  set(dict, "tokens", list_of(e.tokens, [](const std::string& s) { return text(s); }));
  set(dict, "offsets", list_of(e.offsets, range));
  set(dict, "type_ids", list_of(e.type_ids, whole<std::uint32_t>));
  set(dict, "attention_mask", list_of(e.attention_mask, whole<std::uint8_t>));
  set(dict, "special_tokens_mask", list_of(e.special_tokens_mask, whole<std::uint8_t>));
  set(dict, "overflowing", list_of(e.overflowing, encoding_to_python));
  return dict;
}

// encode(text, pair or None, add_special_tokens)
Object encode(PyObject* self, PyObject* arguments) {
  const Tokenizer& tokenizer = tokenizer_of(self);
  const std::string first = to_text(argument(arguments, 0));
  PyObject* pair = argument(arguments, 1);
  const bool special = to_truth(argument(arguments, 2));
  const bool alone = pair == Py_None;
  const std::string second = alone ? std::string() : to_text(pair);
  return encoding_to_python(
      unlocked([&] { return alone ? tokenizer.encode(first, special) : tokenizer.encode(first, second, special); }));
}

Object decode(PyObject* self, PyObject* arguments) {
  const Tokenizer& tokenizer = tokenizer_of(self);
  const std::vector<std::uint32_t> ids = to_ids(argument(arguments, 0));
  const bool skip = to_truth(argument(arguments, 1));
  return text(unlocked([&] { return tokenizer.decode(ids, skip); }));
}

Object token_to_id(PyObject* self, PyObject* arguments) {
  const auto id = tokenizer_of(self).token_to_id(to_text(argument(arguments, 0)));
  return id ? whole(*id) : Object::none();
}

Object id_to_token(PyObject* self, PyObject* arguments) {
  const std::vector<std::uint32_t> ids = to_ids(arguments);
  const auto token = ids.empty() ? std::nullopt : tokenizer_of(self).id_to_token(ids[0]);
  return token ? text(*token) : Object::none();
}

Object vocabulary_size(PyObject* self, PyObject*) { return whole(tokenizer_of(self).vocabulary_size()); }

PyMethodDef methods[] = {{"encode", &entry<encode>, METH_VARARGS, "encode($self, text, pair, add_special_tokens, /)\n--\n\n"},
                         {"decode", &entry<decode>, METH_VARARGS, "decode($self, ids, skip_special_tokens, /)\n--\n\n"},
                         {"token_to_id", &entry<token_to_id>, METH_VARARGS, "token_to_id($self, token, /)\n--\n\n"},
                         {"id_to_token", &entry<id_to_token>, METH_VARARGS, "id_to_token($self, id, /)\n--\n\n"},
                         {"vocabulary_size", &entry<vocabulary_size>, METH_NOARGS, "vocabulary_size($self, /)\n--\n\n"},
                         {nullptr, nullptr, 0, nullptr}};
PyMethodDef functions[] = {{"load_tokenizer", &entry<load>, METH_VARARGS, "load_tokenizer($module, path, /)\n--\n\n"},
                           {nullptr, nullptr, 0, nullptr}};

Object make_module(PyObject*, PyObject*) {
  static PyModuleDef definition{PyModuleDef_HEAD_INIT, "_text", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};
  Object module = Object::taken(PyModule_Create(&definition));
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&free_tokenizer)}, {Py_tp_methods, methods}, {0, nullptr}};
  PyType_Spec spec{"sardonyx._text.Tokenizer", sizeof(TokenizerObject), 0, Py_TPFLAGS_DEFAULT, slots};
  Object type = Object::taken(PyType_FromSpec(&spec));
  check(PyObject_SetAttrString(module.get(), "Tokenizer", type.get()));
  tokenizer_type = reinterpret_cast<PyTypeObject*>(type.release());
  return module;
}

}  // namespace
}  // namespace sdx::python

PyMODINIT_FUNC PyInit__text() { return sdx::python::entry<sdx::python::make_module>(nullptr, nullptr); }
