#pragma once
// Python's objects that C++ lets go of on any thread.

namespace sdx::python::arrays {

// Calls release(object) with the GIL, now where this thread has it, else soon: by the main thread between two of its
// instructions, or by whoever evaluates next. Never waits for the GIL on the engine's threads, nor while others go on (Unlocked):
// who has the GIL may wait for just that thread. Nothing is released once the interpreter has ended.
void let_go_of(void (*release)(void*), void* object);

// Releases what waits. Needs the GIL.
void release_left();

}  // namespace sdx::python::arrays
