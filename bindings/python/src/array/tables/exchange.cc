// Arrays from other libraries' arrays, and evaluation.

#include <algorithm>
#include <set>

#include "../dlpack.h"
#include "../tree.h"
#include "array/kind.h"
#include "array/node.h"
#include "tables.h"

namespace sdx::python::arrays {
namespace {

// Arrays of NumPy keep float64, unlike with array().
mx::array asarray(Any a, std::optional<Dtype> dtype, std::optional<bool> copy) {
  PyObject* const o = a.object;
  if (is_array(o)) return to_array(o, dtype);
  if (copy && !*copy) {
    const auto shared = is_number(o) || PyList_Check(o) || PyTuple_Check(o) ? std::nullopt : from_buffer(o, false, true);
    if (!shared || (dtype && *dtype != shared->dtype())) {
      raise_value_error("Unable to avoid copy while creating an array as requested.");
    }
    return *shared;
  }
  return to_array(o, dtype, true);
}

mx::array from_capsule(Any capsule, std::optional<bool> copy) { return from_dlpack(capsule.object, copy); }

std::vector<mx::array> arrays_in(const Rest& trees) {
  std::vector<mx::array> arrays;
  for (std::size_t i = 0; i < trees.count; ++i) collect(trees.items[i], false, arrays);
  return arrays;
}

void eval(Rest trees) {
  if (trees.count == 1 && is_array(trees.items[0])) {
    const mx::array one = array_of(trees.items[0]);
    if (!one.is_evaluated()) evaluate({&one, 1});
    return;
  }
  const std::vector<mx::array> arrays = arrays_in(trees);
  if (!arrays.empty()) evaluate(arrays);
}

void async_eval(Rest trees) {
  if (mx::detail::tracing()) raise_value_error("[async_eval] Not allowed inside a graph transformation.");
  const std::vector<mx::array> arrays = arrays_in(trees);
  if (!arrays.empty()) unlocked([&] { mx::async_eval(arrays); });
}

bool is_same(const mx::array& a, const mx::array& b) { return a.id() == b.id(); }
bool is_evaluated(const mx::array& a) { return a.is_evaluated(); }
// The bytes of an array's elements, rows first.
mx::array from_bytes(Any bytes, Dtype dtype, Shape shape) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  check(PyBytes_AsStringAndSize(bytes.object, &data, &size));
  Tensor t(dtype, std::move(shape));
  if (t.bytes() != static_cast<std::size_t>(size))
    raise_value_error("the bytes are not those of an array of this shape and type");
  std::copy_n(data, size, static_cast<char*>(t.mutable_data()));
  return mx::array(std::move(t));
}

// Puts another array into the object.
void assign(Any a, const mx::array& b) { expect_array(a.object) = b; }

// The operations that are still to be computed, producers first: (operation, names of its arguments, names of its results).
Object graph(const std::vector<mx::array>& arrays) {
  const Object steps = new_list();
  std::set<const mx::detail::Node*> seen;
  const auto named = [](const mx::array& a) {
    return Object::taken(PyUnicode_FromFormat("%p.%u", static_cast<const void*>(a.node()), a.index()));
  };
  std::vector<std::pair<mx::array, bool>> path;
  for (const mx::array& a : arrays) path.emplace_back(a, false);
  while (!path.empty()) {
    const auto [a, inputs_done] = path.back();
    path.pop_back();
    const mx::detail::Node& node = *a.node();
    if (node.kind == nullptr || a.is_evaluated()) continue;
    if (!inputs_done) {
      if (!seen.insert(&node).second) continue;
      path.emplace_back(a, true);
      for (const mx::array& input : node.inputs) path.emplace_back(input, false);
      continue;
    }
    const Object results = new_list();
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      append(results, Object::taken(PyUnicode_FromFormat("%p.%u", static_cast<const void*>(&node), static_cast<unsigned>(i))));
    }
    append(steps, tuple(text(node.kind->name), list_of(node.inputs, named), results));
  }
  return tuple(steps, list_of(arrays, named));
}

// Behaves as mlx.core: names of types are printed as there, and integers that a type cannot hold wrap around.
void act_as(Any module) {
  set_prefix(module.object);
  set_wrapping(true);
}

}  // namespace

std::vector<Definition> exchange_functions() {
  return {
      def<&asarray>("_asarray(a, dtype=None, copy=None)"),
      def<&from_capsule>("_from_dlpack(capsule, copy=None)"),
      def<&eval>("eval(*args)"),
      def<&async_eval>("async_eval(*args)"),
      def<&is_same>("_is_same(a, b)"),
      def<&is_evaluated>("_is_evaluated(a)"),
      def<&graph>("_graph(arrays)"),
      def<&act_as>("_act_as(module)"),
      def<&from_bytes>("_from_bytes(data, dtype, shape)"),
      def<&assign>("_assign(a, b)"),
  };
}

}  // namespace sdx::python::arrays
