#pragma once
// Trees of lists, tuples and dicts with arrays at their ends.

#include <map>

#include "handle.h"

namespace sdx::python::arrays {

// The arrays, in order; other ends are passed over, or refused (ValueError) where `strict`.
void collect(PyObject* tree, bool strict, std::vector<mx::array>& arrays);
// The same tree with a mark in the place of each array.
Object structure_of(PyObject* tree);
// The tree of such a structure, with arrays[next…] in the places of the marks.
Object fill(PyObject* structure, const std::vector<mx::array>& arrays, std::size_t& next);
// Puts arrays[next…] into the lists and dicts of a tree in place of those that are there, as far as there are enough.
void update(PyObject* tree, const std::vector<mx::array>& arrays, std::size_t& next);
// The arrays as Python's objects.
Object leaves(PyObject* tree, bool strict);
// Puts originals[i] in the place of traced[i], the tree's arrays in order, but where another array was put meanwhile.
void restore(PyObject* tree, const std::vector<mx::array>& traced, PyObject* originals);
// Numbers for classes other than Python's own. A number is given once in a process; a class is held as long as it has one.
class ClassNumbers {
 public:
  std::uint64_t of(PyTypeObject* type);
  int traverse(visitproc visit, void* arg) const;

 private:
  std::map<PyTypeObject*, std::pair<Object, std::uint64_t>> numbers_;
};
// What tells calls of a compiled function apart: the form of the tree, and the constants in it: numbers, text, None, types.
// ValueError for anything else.
void describe(PyObject* tree, ClassNumbers& classes, std::vector<std::uint64_t>& key);

}  // namespace sdx::python::arrays
