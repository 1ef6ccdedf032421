#pragma once
// Log messages for a function of the program's: they wait in a queue, because whoever writes one may not wait for Python. The
// thread that writes holds the log; a thread that holds Python may be about to write.

#include "object.h"

namespace sdx::python {

// queue_log(on): from now on messages go to the queue, or to standard error again.
Object queue_log(PyObject*, PyObject* arguments);
// take_log() -> (level, message), or None when the queue was switched off and nothing is left. Waits for it. What the thread that
// takes them writes itself goes to standard error.
Object take_log(PyObject*, PyObject*);
// call_back(callback, severity, message): whether it raised nothing. What it raises goes to sys.unraisablehook.
Object call_back(PyObject*, PyObject* arguments);

}  // namespace sdx::python
