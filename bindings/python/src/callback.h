#pragma once
// A Python function that the engine calls while it computes.

#include "object.h"

namespace sdx::python {

// For any thread, with the GIL or without; one at a time.
class Callback {
 public:
  // Borrows the function; None: nothing is called.
  explicit Callback(PyObject* function) : function_(function) {}
  bool wanted() const { return function_ != Py_None; }

  // Calls call(the function). False, which ends the work: the function's answer is false, or it raised.
  template <class Call>
  bool go_on(const Call& call) {
    const PyGILState_STATE state = or_stay([] { return PyGILState_Ensure(); });
    bool answered = false;
    try {
      const Object answer = call(Object::of(function_));
      answered = answer.is_none() || to_truth(answer.get());
    } catch (const Raised&) {
      raised_ = true;
    }
    PyGILState_Release(state);
    return answered;
  }
  // After the work. Throws Raised where the function raised.
  void check() const {
    if (raised_) throw Raised();
  }

 private:
  PyObject* function_;
  bool raised_ = false;
};

}  // namespace sdx::python
