// Files. Which names and objects stand for them, sardonyx/array/_files.py knows.

#include "tables.h"

namespace sdx::python::arrays {
namespace {

// Keys and values are held, and the dict is a copy: converting them may run code that changes it.
template <class Visit>
void each_item(PyObject* dict, const Visit& visit) {
  const Object copy = Object::taken(PyDict_Copy(dict));
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t at = 0;
  while (PyDict_Next(copy.get(), &at, &key, &value) != 0) visit(key, value);
}

mx::NamedArrays named(PyObject* dict) {
  if (PyDict_Check(dict) == 0) raise_type_error("expected a dict of arrays, received " + class_name(dict));
  mx::NamedArrays arrays;
  each_item(dict, [&](PyObject* key, PyObject* value) { arrays.emplace_back(to_text(key), From<mx::array>::get(value)); });
  // Without the GIL nothing is computed that Python's functions take part in.
  std::vector<mx::array> all;
  for (const auto& [name, a] : arrays) all.push_back(a);
  if (!all.empty()) evaluate(all);
  return arrays;
}

Object dict_of(const mx::NamedArrays& arrays) {
  Object dict = new_dict();
  for (const auto& [name, a] : arrays) check(PyDict_SetItem(dict.get(), text(name).get(), wrap(a).get()));
  return dict;
}

Object metadata_to_python(const mx::GgufMetadata& metadata) {
  Object dict = new_dict();
  for (const auto& [name, value] : metadata) {
    Object made;
    if (const auto* a = std::get_if<mx::array>(&value)) made = wrap(*a);
    if (const auto* t = std::get_if<std::string>(&value)) made = text(*t);
    if (const auto* list = std::get_if<std::vector<std::string>>(&value)) made = texts(*list);
    check(PyDict_SetItem(dict.get(), text(name).get(), made.get()));
  }
  return dict;
}

mx::GgufMetadata gguf_metadata(PyObject* dict) {
  mx::GgufMetadata metadata;
  if (dict == Py_None) return metadata;
  if (PyDict_Check(dict) == 0) raise_type_error("expected a dict as metadata, received " + class_name(dict));
  each_item(dict, [&](PyObject* key, PyObject* value) {
    if (PyUnicode_Check(value) != 0) {
      metadata.insert_or_assign(to_text(key), to_text(value));
    } else if (PyList_Check(value) != 0 || PyTuple_Check(value) != 0) {
      metadata.insert_or_assign(to_text(key), sdx::python::to_list(value, to_text));
    } else {
      metadata.insert_or_assign(to_text(key), From<mx::array>::get(value));
    }
  });
  return metadata;
}

mx::Metadata text_metadata(PyObject* dict) {
  mx::Metadata metadata;
  if (dict == Py_None) return metadata;
  if (PyDict_Check(dict) == 0) raise_type_error("expected a dict as metadata, received " + class_name(dict));
  each_item(dict, [&](PyObject* key, PyObject* value) { metadata[to_text(key)] = to_text(value); });
  return metadata;
}

void save(std::string file, const mx::array& a) {
  evaluate({&a, 1});
  unlocked([&] { mx::save(file, a); });
}
void savez(std::string file, Any arrays, bool compressed) {
  const mx::NamedArrays all = named(arrays.object);
  unlocked([&] { compressed ? mx::savez_compressed(file, all) : mx::savez(file, all); });
}
void save_safetensors(std::string file, Any arrays, Any metadata) {
  const mx::NamedArrays all = named(arrays.object);
  const mx::Metadata texts = text_metadata(metadata.object);
  unlocked([&] { mx::save_safetensors(file, all, texts); });
}
void save_gguf(std::string file, Any arrays, Any metadata) {
  const mx::NamedArrays all = named(arrays.object);
  const mx::GgufMetadata about = gguf_metadata(metadata.object);
  unlocked([&] { mx::save_gguf(file, all, about); });
}

Object load_npy(std::string file) {
  return wrap(unlocked([&] { return mx::load_npy(file); }));
}
// (arrays by name, metadata)
Object load(std::string file, std::string format) {
  const mx::Loaded loaded = unlocked([&] { return mx::load(file, format); });
  return tuple(dict_of(loaded.arrays), metadata_to_python(loaded.metadata));
}

}  // namespace

std::vector<Definition> io_functions() {
  return {
      def<&save>("_save(file, arr)"),
      def<&savez>("_savez(file, arrays, compressed)"),
      def<&save_safetensors>("_save_safetensors(file, arrays, metadata)"),
      def<&save_gguf>("_save_gguf(file, arrays, metadata)"),
      def<&load_npy>("_load_npy(file)"),
      def<&load>("_load(file, format)"),
  };
}

}  // namespace sdx::python::arrays
