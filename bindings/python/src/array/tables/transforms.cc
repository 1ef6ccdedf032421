// Transformations of functions of lists of arrays. sardonyx/array/_transforms.py makes trees of the lists.

#include "../callback.h"
#include "../let_go.h"
#include "../tree.h"
#include "tables.h"

namespace sdx::python::arrays {

std::shared_ptr<PyObject> shared(PyObject* object) {
  Py_XINCREF(object);
  return {object, [](PyObject* held) {
            if (held != nullptr) let_go_of([](void* o) { Py_DECREF(static_cast<PyObject*>(o)); }, held);
          }};
}

mx::ArraysFunction arrays_function(PyObject* fn) {
  return [held = shared(fn)](const std::vector<mx::array>& arrays) {
    const Object out = Object::of(held.get()).call(wrap_list(arrays));
    return From<std::vector<mx::array>>::get(out.get());
  };
}

namespace {

using Arrays = std::vector<mx::array>;

Object pair_of_lists(const std::pair<Arrays, Arrays>& v) { return tuple(wrap_list(v.first), wrap_list(v.second)); }

Object vjp(Any fn, const Arrays& primals, const Arrays& cotangents) {
  return pair_of_lists(mx::vjp(arrays_function(fn.object), primals, cotangents));
}
Object jvp(Any fn, const Arrays& primals, const Arrays& tangents) {
  return pair_of_lists(mx::jvp(arrays_function(fn.object), primals, tangents));
}

Object value_and_grad(Any fn, const Arrays& arguments, std::vector<int> argnums) {
  return pair_of_lists(mx::value_and_grad(arrays_function(fn.object), std::move(argnums))(arguments));
}

using Axes = std::vector<std::optional<int>>;
Axes axes_of(PyObject* list) { return sdx::python::to_list(list, From<std::optional<int>>::get); }
Object axes_to_python(const Axes& axes) {
  return list_of(axes, [](const std::optional<int>& a) { return a ? whole(*a) : Object::none(); });
}

// A function that says the axes of its results only when it was called: fn(arrays) -> (arrays, axes).
Object vmap(Any fn, const Arrays& arguments, Any in_axes, Any out_axes) {
  return wrap_list(mx::vmap(arrays_function(fn.object), axes_of(in_axes.object), axes_of(out_axes.object))(arguments));
}

Arrays checkpoint(Any fn, const Arrays& arguments) { return mx::checkpoint(arrays_function(fn.object))(arguments); }

// Rules are None or functions of lists: vjp(primals, cotangents, outputs), jvp(primals, tangents), vmap(inputs, axes).
Arrays custom(Any fn, Any vjp_rule, Any jvp_rule, Any vmap_rule, const Arrays& arguments) {
  mx::CustomRules rules;
  if (vjp_rule.object != Py_None) {
    rules.vjp = [held = shared(vjp_rule.object)](const Arrays& primals, const Arrays& cotangents, const Arrays& outputs) {
      const Object out = Object::of(held.get()).call(wrap_list(primals), wrap_list(cotangents), wrap_list(outputs));
      return From<Arrays>::get(out.get());
    };
  }
  if (jvp_rule.object != Py_None) {
    rules.jvp = [held = shared(jvp_rule.object)](const Arrays& primals, const Arrays& tangents) {
      return From<Arrays>::get(Object::of(held.get()).call(wrap_list(primals), wrap_list(tangents)).get());
    };
  }
  if (vmap_rule.object != Py_None) {
    rules.vmap = [held = shared(vmap_rule.object)](const Arrays& inputs, const Axes& axes) {
      const Object out = Object::of(held.get()).call(wrap_list(inputs), axes_to_python(axes));
      return to_pair(out.get(), From<Arrays>::get, axes_of);
    };
  }
  return mx::custom_function(arrays_function(fn.object), std::move(rules))(arguments);
}

Object leaves_of(Any tree, bool strict) { return leaves(tree.object, strict); }
void update_tree(Any tree, const Arrays& arrays) {
  std::size_t next = 0;
  update(tree.object, arrays, next);
}
void restore_tree(Any tree, const Arrays& traced, Any originals) {
  if (PyList_Check(originals.object) == 0 || PyList_Size(originals.object) < static_cast<Py_ssize_t>(traced.size())) {
    raise_value_error("expected a list of as many arrays");
  }
  restore(tree.object, traced, originals.object);
}

Object flatten_tree(Any tree, bool strict) { return tuple(leaves(tree.object, strict), structure_of(tree.object)); }
Object unflatten_tree(Any structure, const Arrays& arrays) {
  std::size_t next = 0;
  return fill(structure.object, arrays, next);
}

}  // namespace

std::vector<Definition> transform_functions() {
  return {
      def<&vjp>("_vjp(fn, primals, cotangents)"),
      def<&jvp>("_jvp(fn, primals, tangents)"),
      def<&value_and_grad>("_value_and_grad(fn, arguments, argnums)"),
      def<&vmap>("_vmap(fn, arguments, in_axes, out_axes)"),
      def<&checkpoint>("_checkpoint(fn, arguments)"),
      def<&custom>("_custom(fn, vjp, jvp, vmap, arguments)"),
      def<&leaves_of>("_leaves(tree, strict=False)"),
      def<&update_tree>("_update(tree, arrays)"),
      def<&restore_tree>("_restore(tree, traced, originals)"),
      def<&flatten_tree>("_flatten(tree, strict=False)"),
      def<&unflatten_tree>("_unflatten(structure, arrays)"),
      def<&mx::enable_compile>("enable_compile()"),
      def<&mx::disable_compile>("disable_compile()"),
  };
}

}  // namespace sdx::python::arrays
