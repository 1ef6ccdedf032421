#include "base/system/pages.h"
#include "base/system/processes/unused_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace sdx {
namespace {

#ifdef MADV_HUGEPAGE
constexpr std::size_t kHugePage = std::size_t{2} << 20;
#endif

// Calls advise(begin, bytes) for the pages of a size that lie wholly inside, if there are any.
template <class Advise>
void with_whole_pages(const void* data, std::size_t bytes, std::size_t page, const Advise& advise) {
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t begin = (at + page - 1) / page * page, end = (at + bytes) / page * page;
  if (end > begin) advise(const_cast<char*>(static_cast<const char*>(data)) + (begin - at), end - begin);
}

}  // namespace

std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

std::uint64_t machine_memory() noexcept {
  static const std::uint64_t bytes = [] {
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    return pages > 0 ? static_cast<std::uint64_t>(pages) * page_bytes() : 0;
  }();
  return bytes;
}

// Linux counts caches that it would drop.
std::uint64_t unused_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string key; file >> key;) {
    std::uint64_t kib = 0;
    if (key == "MemAvailable:" && file >> kib) return kib << 10;
    std::getline(file, key);
  }
  return 0;
}

void* take_pages(std::size_t bytes, bool all) noexcept {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (all ? 0 : MAP_NORESERVE);
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

void give_back_pages(void* pages, std::size_t bytes) noexcept { ::munmap(pages, bytes); }

void make_read_only(void* pages, std::size_t bytes) noexcept { ::mprotect(pages, bytes, PROT_READ); }

void prefer_huge_pages([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef MADV_HUGEPAGE
  with_whole_pages(data, bytes, kHugePage, [](void* begin, std::size_t size) { ::madvise(begin, size, MADV_HUGEPAGE); });
#endif
}

void forget_pages(void* data, std::size_t bytes) noexcept {
  with_whole_pages(data, bytes, page_bytes(), [](void* begin, std::size_t size) { ::madvise(begin, size, MADV_DONTNEED); });
}

const void* map_file(const File& file, std::size_t bytes) noexcept {
  void* const data = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  return data == MAP_FAILED ? nullptr : data;
}

// Both take pointers to what may be changed; neither changes anything.
void unmap_file(const void* data, std::size_t bytes) noexcept { ::munmap(const_cast<void*>(data), bytes); }

void release_file_pages(const void* data, std::size_t bytes) noexcept {
  with_whole_pages(data, bytes, page_bytes(), [](void* begin, std::size_t size) { ::madvise(begin, size, MADV_DONTNEED); });
}

void* allocate_aligned(std::size_t bytes, std::size_t alignment) noexcept {
  void* data = nullptr;
  return ::posix_memalign(&data, alignment, bytes) == 0 ? data : nullptr;
}

void free_aligned(void* data) noexcept { std::free(data); }

}  // namespace sdx
