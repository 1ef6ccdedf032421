#pragma once
// Passes log messages to a function of the program. They wait in a queue, because a thread that logs holds the log and must not
// wait for Python: a thread that holds Python may be about to log.

#include "object.h"

namespace sdx::python {

// queue_log(on): puts messages into the queue, or writes them to standard error again.
Object queue_log(PyObject*, PyObject* arguments);
// take_log() -> (level, message), or None when the queue was switched off and nothing is left. Waits for it. What the thread that
// takes them writes itself goes to standard error.
Object take_log(PyObject*, PyObject*);
// call_back(callback, severity, message): whether it raised nothing. What it raises goes to sys.unraisablehook.
Object call_back(PyObject*, PyObject* arguments);

}  // namespace sdx::python
