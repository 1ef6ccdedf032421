#include "let_go.h"

#include <atomic>
#include <mutex>
#include <vector>

#include "../object.h"

namespace sdx::python::arrays {
namespace {

struct Left {
  void (*release)(void*);
  void* object;
};

// Never destroyed: the engine's threads may still let go of something while the process ends.
struct Waiting {
  std::mutex mutex;
  std::vector<Left> left;
  std::atomic<bool> any = false;    // read without the mutex
  std::atomic<bool> asked = false;  // the main thread was told
};
Waiting& waiting() {
  static Waiting& made = *new Waiting();
  return made;
}

int release_pending(void*) {
  waiting().asked = false;
  release_left();
  return 0;
}

}  // namespace

void release_left() {
  Waiting& w = waiting();
  if (!w.any) return;
  std::vector<Left> left;
  {
    const std::lock_guard lock(w.mutex);
    left.swap(w.left);
    w.any = false;
  }
  for (const Left& one : left) one.release(one.object);
}

void let_go_of(void (*release)(void*), void* object) {
  if (Py_IsInitialized() == 0) return;
  if (unlocked_scopes == 0 && PyGILState_GetThisThreadState() != nullptr) {
    const PyGILState_STATE state = or_stay([] { return PyGILState_Ensure(); });
    release(object);
    PyGILState_Release(state);
    return;
  }
  Waiting& w = waiting();
  {
    const std::lock_guard lock(w.mutex);
    w.left.push_back({release, object});
    w.any = true;
  }
  // Python's own list of pending calls is short, and full at times: the next object, or the next evaluation, tries again.
  if (!w.asked.exchange(true) && Py_AddPendingCall(&release_pending, nullptr) != 0) w.asked = false;
}

}  // namespace sdx::python::arrays
