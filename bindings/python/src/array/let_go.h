#pragma once
// Python's objects that C++ lets go of on any thread.

namespace sdx::python::arrays {

// Calls release(object) with the GIL: at once if this thread holds it, otherwise soon, by the main thread between two of its
// instructions or by the next thread that evaluates. Never waits for the GIL, neither on the engine's threads nor while others
// continue (Unlocked), because the thread that holds the GIL may be waiting for this one. Releases nothing once the interpreter
// has ended.
void let_go_of(void (*release)(void*), void* object);

// Releases what waits. Needs the GIL.
void release_left();

}  // namespace sdx::python::arrays
