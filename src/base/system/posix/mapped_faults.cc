#include "base/system/mapped_file.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <sdx/mapped_files.hpp>

namespace sdx {

// The handler finds places without a lock, so they are never freed: one that is given back serves the next file.
struct MappedRange::Place {
  std::atomic<std::uintptr_t> begin{0}, end{0};  // begin is 0: no file
  std::atomic<bool> used{true}, damaged{false};
  Place* next = nullptr;
};

namespace {

using Place = MappedRange::Place;
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

std::atomic<Place*> first_place{nullptr};
struct sigaction before {};
std::uintptr_t page_bytes = 4096;

Place& free_place() {
  for (Place* p = first_place.load(std::memory_order_acquire); p != nullptr; p = p->next) {
    bool used = false;
    if (p->used.compare_exchange_strong(used, true)) return *p;
  }
  auto* const made = new Place;
  made->next = first_place.load(std::memory_order_relaxed);
  while (!first_place.compare_exchange_weak(made->next, made, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return *made;
}

// The file at fault is in use, so its place does not change meanwhile; others may.
Place* place_holding(std::uintptr_t address, std::uintptr_t& end) {
  for (Place* p = first_place.load(std::memory_order_acquire); p != nullptr; p = p->next) {
    const std::uintptr_t begin = p->begin.load();
    end = p->end.load();
    if (begin != 0 && begin <= address && address < end && p->begin.load() == begin) return p;
  }
  return nullptr;
}

// Everything from the faulting page on: a file is cut short at its end, and a fault for each page would be one mapping each.
bool read_as_zeros(std::uintptr_t address) {
  std::uintptr_t end = 0;
  Place* const place = place_holding(address, end);
  if (place == nullptr) return false;
  const std::uintptr_t page = address / page_bytes * page_bytes;
  place->damaged.store(true);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the signal brings the address as a number.
  return ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
         MAP_FAILED;
}

void on_fault(int number, siginfo_t* info, void* context) {
  const int error = errno;
  const bool of_file = info->si_code == BUS_ADRERR || info->si_code == BUS_OBJERR;
  const bool survived = of_file && read_as_zeros(reinterpret_cast<std::uintptr_t>(info->si_addr));
  errno = error;
  if (survived) return;
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(number, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(number);
  ::signal(number, SIG_DFL);                // the instruction faults again, and ends the process
  if (info->si_code <= 0) ::raise(number);  // a signal that was sent comes when the handler is left
}

}  // namespace

void survive_mapped_faults() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK);
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &before);
  });
}

void check_mapped_files() { MappedFile::check_none_damaged(); }

MappedRange::MappedRange(const void* begin, std::size_t bytes) : place_(&free_place()) {
  place_->damaged = false;
  place_->end = reinterpret_cast<std::uintptr_t>(begin) + bytes;
  place_->begin = reinterpret_cast<std::uintptr_t>(begin);
}

MappedRange::~MappedRange() {
  place_->begin = 0;
  place_->used = false;
}

bool MappedRange::damaged() const noexcept { return place_->damaged.load(std::memory_order_relaxed); }

}  // namespace sdx
