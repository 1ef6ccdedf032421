// compile(): functions whose operations are built once.

#include <cstddef>
#include <map>

#include "bind.h"
#include "callback.h"
#include "tree.h"

extern "C" {
#include <structmember.h>
}

namespace sdx::python::arrays {
namespace {

// One function of Python. All members are touched under the GIL only.
struct Compiled {
  std::shared_ptr<PyObject> function;
  std::shared_ptr<PyObject> inputs, outputs;  // trees of state, or null
  std::optional<mx::CompiledFunction> compiled;
  // The arguments of the function while it is traced.
  PyObject* call = nullptr;  // structure of (args, kwargs), borrowed
  Object traced;             // structure of its result
  std::map<std::vector<std::uint64_t>, Object> structures;
  ClassNumbers classes;
};

struct CompiledObject {
  PyObject_HEAD PyObject* dict;
  Compiled* value;
};

constexpr std::size_t kMostStructures = 4096;

std::vector<mx::array> run_traced(Compiled& c, const std::vector<mx::array>& arrays) {
  std::size_t next = 0;
  const Object call = fill(c.call, arrays, next);
  const Object out =
      Object::taken(PyObject_Call(c.function.get(), PyTuple_GetItem(call.get(), 0), PyTuple_GetItem(call.get(), 1)));
  std::vector<mx::array> results;
  collect(out.get(), false, results);
  c.traced = structure_of(out.get());
  return results;
}

mx::Capture capture_of(const std::shared_ptr<PyObject>& tree) {
  if (tree == nullptr) return {};
  return {[tree] {
            std::vector<mx::array> arrays;
            collect(tree.get(), false, arrays);
            return arrays;
          },
          [tree](const std::vector<mx::array>& arrays) {
            std::size_t next = 0;
            update(tree.get(), arrays, next);
          }};
}

void describe_arrays(const std::vector<mx::array>& arrays, std::vector<std::uint64_t>& key) {
  for (const mx::array& a : arrays) {
    key.push_back(static_cast<std::uint64_t>(a.dtype()) << 32 | a.shape().size());
    for (const std::int64_t extent : a.shape()) key.push_back(static_cast<std::uint64_t>(extent));
  }
}

Object call_compiled(Compiled& c, const Object& args, const Object& kwargs) {
  const Object call = tuple(args, kwargs);
  std::vector<mx::array> arrays;
  collect(call.get(), false, arrays);
  std::vector<std::uint64_t> constants;
  constants.reserve(32);
  describe(call.get(), c.classes, constants);
  std::vector<std::uint64_t> key = constants;
  describe_arrays(arrays, key);

  const Object structure = structure_of(call.get());
  PyObject* const outer_call = std::exchange(c.call, structure.get());
  const Object outer_traced = std::exchange(c.traced, Object());
  std::vector<mx::array> results;
  try {
    results = (*c.compiled)(arrays, constants);
  } catch (...) {
    c.call = outer_call;
    c.traced = outer_traced;
    throw;
  }
  c.call = outer_call;
  if (c.traced) {
    if (c.structures.size() >= kMostStructures) c.structures.clear();
    c.structures[key] = c.traced;
  }
  c.traced = outer_traced;
  const auto found = c.structures.find(key);
  if (found == c.structures.end()) raise_value_error("compile: the function was not traced for these arguments");
  std::size_t next = 0;
  return fill(found->second.get(), results, next);
}

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded<PyObject*>(nullptr, [&] {
    Compiled& c = *reinterpret_cast<CompiledObject*>(self)->value;
    return call_compiled(c, Object::of(args), kwargs == nullptr ? new_dict() : Object::of(kwargs)).release();
  });
}

// _Compiled(fun, inputs, outputs, shapeless)
PyObject* construct(PyTypeObject* type, PyObject* arguments, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] {
    expect_arguments(arguments, 4);
    auto value = std::make_unique<Compiled>();
    Compiled* const c = value.get();
    const auto tree = [&](Py_ssize_t i) {
      return argument(arguments, i) == Py_None ? std::shared_ptr<PyObject>() : shared(argument(arguments, i));
    };
    c->function = shared(argument(arguments, 0));
    c->inputs = tree(1);
    c->outputs = tree(2);
    c->compiled.emplace([c](const std::vector<mx::array>& arrays) { return run_traced(*c, arrays); },
                        mx::CompileOptions{capture_of(c->inputs), capture_of(c->outputs), to_truth(argument(arguments, 3))});
    auto* const allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
    PyObject* const object = allocate(type, 0);
    if (object == nullptr) throw Raised();
    reinterpret_cast<CompiledObject*>(object)->value = value.release();
    return object;
  });
}

// Each reference that is held is visited once; the copies of a shared pointer hold one together.
int traverse(PyObject* self, visitproc visit, void* arg) {
  const auto* object = reinterpret_cast<CompiledObject*>(self);
  Py_VISIT(reinterpret_cast<PyObject*>(Py_TYPE(self)));
  Py_VISIT(object->dict);
  if (object->value == nullptr) return 0;
  const Compiled& c = *object->value;
  Py_VISIT(c.function.get());
  Py_VISIT(c.inputs.get());
  Py_VISIT(c.outputs.get());
  Py_VISIT(c.traced.get());
  for (const auto& [key, structure] : c.structures) Py_VISIT(structure.get());
  return c.classes.traverse(visit, arg);
}

int clear(PyObject* self) {
  auto* object = reinterpret_cast<CompiledObject*>(self);
  Py_CLEAR(object->dict);
  return 0;
}

void destroy(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  delete reinterpret_cast<CompiledObject*>(self)->value;
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(CompiledObject, dict), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

}  // namespace

void add_compiled(const Object& module) {
  static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&construct)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(&destroy)},
                                {Py_tp_call, reinterpret_cast<void*>(&call)},
                                {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                                {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                                {Py_tp_members, members},
                                {Py_tp_getattro, reinterpret_cast<void*>(&PyObject_GenericGetAttr)},
                                {Py_tp_setattro, reinterpret_cast<void*>(&PyObject_GenericSetAttr)},
                                {0, nullptr}};
  static PyType_Spec spec{"sardonyx.array._Compiled", sizeof(CompiledObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
  static PyObject* made = nullptr;  // a module may be made again: there is one class as long as the process
  if (made == nullptr) {
    Object type = Object::taken(PyType_FromSpec(&spec));
    if (made == nullptr) made = type.release();
  }
  check(PyObject_SetAttrString(module.get(), "_Compiled", made));
}

}  // namespace sdx::python::arrays
