#include "tree.h"

#include <cstring>
#include <functional>
#include <string_view>

#include "dtype.h"
#include "random_state.h"

namespace sdx::python::arrays {
namespace {

constexpr int kDeepest = 500;

// A mark for an array in a structure.
PyObject* mark() {
  static PyObject* const made = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  return made;
}

void check_depth(int depth) {
  if (depth > kDeepest) raise_value_error("a tree of lists and dicts is nested too deep");
}

// Holds the list, because using an element may run code that changes it.
Object list_item(PyObject* list, Py_ssize_t i) {
  PyObject* const found = PyList_GetItem(list, i);
  if (found == nullptr) throw Raised();
  return Object::of(found);
}

// Calls `visit` for each end of the tree. Lists may change meanwhile.
template <class Visit>
void walk(PyObject* tree, const Visit& visit, int depth = 0) {
  check_depth(depth);
  if (PyList_Check(tree) != 0) {
    for (Py_ssize_t i = 0; i < PyList_Size(tree); ++i) walk(list_item(tree, i).get(), visit, depth + 1);
  } else if (PyTuple_Check(tree) != 0) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(tree); ++i) walk(PyTuple_GetItem(tree, i), visit, depth + 1);
  } else if (PyDict_Check(tree) != 0) {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t at = 0;
    while (PyDict_Next(tree, &at, &key, &value) != 0) walk(Object::of(value).get(), visit, depth + 1);
  } else {
    visit(tree);
  }
}

// The same items as a tuple of the class of `tree`, which may be a named one.
Object tuple_like(PyObject* tree, const Object& made) {
  if (Py_TYPE(tree) == &PyTuple_Type) return made;
  const Object type = Object::of(reinterpret_cast<PyObject*>(Py_TYPE(tree)));
  if (PyObject_HasAttrString(tree, "_fields") != 0) return Object::taken(PyObject_CallObject(type.get(), made.get()));
  return type.call(made);
}

// A tree of the same form with other ends.
template <class Change>
Object map(PyObject* tree, const Change& change, int depth = 0) {
  check_depth(depth);
  if (PyList_Check(tree) != 0) {
    const Py_ssize_t count = PyList_Size(tree);
    Object list = Object::taken(PyList_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      check(PyList_SetItem(list.get(), i, map(list_item(tree, i).get(), change, depth + 1).release()));
    }
    return list;
  }
  if (PyTuple_Check(tree) != 0) {
    const Py_ssize_t count = PyTuple_Size(tree);
    Object made = Object::taken(PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      check(PyTuple_SetItem(made.get(), i, map(PyTuple_GetItem(tree, i), change, depth + 1).release()));
    }
    return tuple_like(tree, made);
  }
  if (PyDict_Check(tree) != 0) {
    Object dict = new_dict();
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t at = 0;
    while (PyDict_Next(tree, &at, &key, &value) != 0) {
      const Object name = Object::of(key), held = Object::of(value);
      check(PyDict_SetItem(dict.get(), name.get(), map(held.get(), change, depth + 1).get()));
    }
    return dict;
  }
  return change(tree);
}

Object put_into(PyObject* tree, const std::function<Object(PyObject*)>& next, int depth) {
  check_depth(depth);
  if (is_array(tree)) return next(tree);
  if (is_random_state(tree)) {
    set_random_state(array_of(next(wrap(random_state()).get()).get()));
    return Object::of(tree);
  }
  if (PyList_Check(tree) != 0) {
    for (Py_ssize_t i = 0; i < PyList_Size(tree); ++i) {
      check(PyList_SetItem(tree, i, put_into(list_item(tree, i).get(), next, depth + 1).release()));
    }
  } else if (PyTuple_Check(tree) != 0) {
    const Py_ssize_t count = PyTuple_Size(tree);
    Object made = Object::taken(PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      check(PyTuple_SetItem(made.get(), i, put_into(PyTuple_GetItem(tree, i), next, depth + 1).release()));
    }
    return tuple_like(tree, made);
  } else if (PyDict_Check(tree) != 0) {
    const Object keys = Object::taken(PyDict_Keys(tree));
    for (Py_ssize_t i = 0; i < PyList_Size(keys.get()); ++i) {
      PyObject* const key = PyList_GetItem(keys.get(), i);
      const Object value = Object::taken(PyObject_GetItem(tree, key));
      check(PyDict_SetItem(tree, key, put_into(value.get(), next, depth + 1).get()));
    }
  }
  return Object::of(tree);
}

// Any text, lone surrogates as well, so that different texts are never taken for one.
void describe_text(PyObject* text, std::vector<std::uint64_t>& key) {
  const Object bytes = Object::taken(PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass"));
  char* data = nullptr;
  Py_ssize_t size = 0;
  check(PyBytes_AsStringAndSize(bytes.get(), &data, &size));
  const auto count = static_cast<std::size_t>(size);
  key.push_back(count);
  const std::size_t first = key.size();
  key.resize(first + (count + 7) / 8);
  if (count != 0) std::memcpy(&key[first], data, count);
}

}  // namespace

void collect(PyObject* tree, bool strict, std::vector<mx::array>& arrays) {
  walk(tree, [&](PyObject* end) {
    if (is_array(end)) {
      arrays.push_back(array_of(end));
    } else if (is_random_state(end)) {
      arrays.push_back(random_state());
    } else if (strict) {
      raise_value_error("[tree_flatten] The argument should contain only arrays");
    }
  });
}

Object structure_of(PyObject* tree) {
  return map(tree, [](PyObject* end) { return is_array(end) ? Object::of(mark()) : Object::of(end); });
}

Object fill(PyObject* structure, const std::vector<mx::array>& arrays, std::size_t& next) {
  return map(structure, [&](PyObject* end) {
    if (end != mark()) return Object::of(end);
    if (next >= arrays.size()) raise_value_error("fewer arrays than the tree has places");
    return wrap(arrays[next++]);
  });
}

void update(PyObject* tree, const std::vector<mx::array>& arrays, std::size_t& next) {
  put_into(
      tree, [&](PyObject* there) { return next < arrays.size() ? wrap(arrays[next++]) : Object::of(there); }, 0);
}

Object leaves(PyObject* tree, bool strict) {
  Object list = new_list();
  walk(tree, [&](PyObject* end) {
    if (is_array(end)) {
      append(list, Object::of(end));
    } else if (strict) {
      raise_value_error("[tree_flatten] The argument should contain only arrays");
    }
  });
  return list;
}

void restore(PyObject* tree, const std::vector<mx::array>& traced, PyObject* originals) {
  std::size_t at = 0;
  put_into(
      tree,
      [&](PyObject* there) {
        const std::size_t i = at++;
        if (i >= traced.size() || array_of(there).id() != traced[i].id()) return Object::of(there);
        return list_item(originals, static_cast<Py_ssize_t>(i));
      },
      0);
}

std::uint64_t ClassNumbers::of(PyTypeObject* type) {
  static std::uint64_t given = 0;
  constexpr std::size_t kMost = 4096;
  if (type == &PyTuple_Type || type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type) return 0;
  const auto found = numbers_.find(type);
  if (found != numbers_.end()) return found->second.second;
  if (numbers_.size() >= kMost) std::exchange(numbers_, {}).clear();
  numbers_.emplace(type, std::pair(Object::of(reinterpret_cast<PyObject*>(type)), ++given));
  return given;
}

int ClassNumbers::traverse(visitproc visit, void* arg) const {
  for (const auto& [type, held] : numbers_) Py_VISIT(held.first.get());
  return 0;
}

void describe(PyObject* tree, ClassNumbers& classes, std::vector<std::uint64_t>& key) {
  enum : std::uint64_t { array = 1, list, tuple, dict, integer, big, real, other, name };
  const auto kind_of = [&](std::uint64_t kind) { return kind | classes.of(Py_TYPE(tree)) << 8; };
  if (is_array(tree)) {
    key.push_back(array);
  } else if (PyList_Check(tree) != 0) {
    key.insert(key.end(), {list, static_cast<std::uint64_t>(PyList_Size(tree))});
    for (Py_ssize_t i = 0; i < PyList_Size(tree); ++i) describe(list_item(tree, i).get(), classes, key);
  } else if (PyTuple_Check(tree) != 0) {
    key.insert(key.end(), {kind_of(tuple), static_cast<std::uint64_t>(PyTuple_Size(tree))});
    for (Py_ssize_t i = 0; i < PyTuple_Size(tree); ++i) describe(PyTuple_GetItem(tree, i), classes, key);
  } else if (PyDict_Check(tree) != 0) {
    key.insert(key.end(), {dict, static_cast<std::uint64_t>(PyDict_Size(tree))});
    PyObject *name_object = nullptr, *value = nullptr;
    Py_ssize_t at = 0;
    while (PyDict_Next(tree, &at, &name_object, &value) != 0) {
      const Object held_name = Object::of(name_object), held = Object::of(value);
      describe(held_name.get(), classes, key);
      describe(held.get(), classes, key);
    }
  } else if (PyLong_Check(tree) != 0) {
    int beyond = 0;
    const long long value = PyLong_AsLongLongAndOverflow(tree, &beyond);
    key.push_back(kind_of(beyond == 0 ? integer : big));
    if (beyond == 0) {
      key.push_back(static_cast<std::uint64_t>(value));
    } else {
      describe_text(Object::taken(PyNumber_ToBase(tree, 16)).get(), key);
    }
  } else if (PyFloat_Check(tree) != 0) {
    const double value = PyFloat_AsDouble(tree);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    key.insert(key.end(), {kind_of(real), bits});
  } else if (PyUnicode_Check(tree) != 0) {
    key.push_back(kind_of(name));
    describe_text(tree, key);
  } else if (tree == Py_None || is_dtype(tree)) {
    key.insert(key.end(), {other, reinterpret_cast<std::uintptr_t>(tree)});
  } else {
    raise_value_error(
        "[compile] Function arguments must be trees of arrays or constants (floats, ints, strings, or None), but received " +
        class_name(tree));
  }
}

}  // namespace sdx::python::arrays
