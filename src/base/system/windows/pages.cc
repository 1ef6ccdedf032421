#include "base/system/pages.h"

#include <io.h>
#include <malloc.h>

#include <algorithm>

#include "base/system/processes/unused_memory.h"
#include "base/system/windows/api.h"

namespace sdx {
namespace {

// Calls act(begin, bytes) for the pages that lie wholly inside, if there are any.
template <class Act>
void with_whole_pages(const void* data, std::size_t bytes, const Act& act) {
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  const std::size_t page = page_bytes();
  const std::uintptr_t begin = (at + page - 1) / page * page, end = (at + bytes) / page * page;
  if (end > begin) act(const_cast<char*>(static_cast<const char*>(data)) + (begin - at), end - begin);
}

}  // namespace

std::size_t page_bytes() noexcept {
  static const std::size_t bytes = [] {
    SYSTEM_INFO info{};
    ::GetSystemInfo(&info);
    return static_cast<std::size_t>(info.dwPageSize);
  }();
  return bytes;
}

std::uint64_t machine_memory() noexcept {
  static const std::uint64_t bytes = [] {
    MEMORYSTATUSEX status{};
    status.dwLength = sizeof status;
    return ::GlobalMemoryStatusEx(&status) != 0 ? status.ullTotalPhys : 0;
  }();
  return bytes;
}

std::uint64_t unused_memory() {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  return ::GlobalMemoryStatusEx(&status) != 0 ? status.ullAvailPhys : 0;
}

void* take_pages(std::size_t bytes, bool /*all*/) noexcept {
  void* const pages = ::VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (pages == nullptr) windows::set_errno();
  return pages;
}

void give_back_pages(void* pages, std::size_t /*bytes*/) noexcept { ::VirtualFree(pages, 0, MEM_RELEASE); }

void make_read_only(void* pages, std::size_t bytes) noexcept {
  DWORD before = 0;
  ::VirtualProtect(pages, bytes, PAGE_READONLY, &before);
}

// Large pages of Windows need a privilege that few users have, and cannot be given back in parts.
void prefer_huge_pages(void* /*data*/, std::size_t /*bytes*/) noexcept {}

// The pages stay charged to the process, and lose their memory when the system is short of it.
void forget_pages(void* data, std::size_t bytes) noexcept {
  with_whole_pages(data, bytes, [](void* begin, std::size_t size) { ::VirtualAlloc(begin, size, MEM_RESET, PAGE_NOACCESS); });
}

// The view keeps the file's section, and the section the file.
const void* map_file(const File& file, std::size_t bytes) noexcept {
  const auto handle = reinterpret_cast<HANDLE>(::_get_osfhandle(file.descriptor()));
  const HANDLE section = ::CreateFileMappingW(handle, nullptr, PAGE_READONLY, 0, 0, nullptr);
  if (section == nullptr) {
    windows::set_errno();
    return nullptr;
  }
  const void* const data = ::MapViewOfFile(section, FILE_MAP_READ, 0, 0, bytes);
  if (data == nullptr) windows::set_errno();
  ::CloseHandle(section);
  return data;
}

void unmap_file(const void* data, std::size_t /*bytes*/) noexcept { ::UnmapViewOfFile(data); }

// Unlocking pages that are not locked takes them out of the working set.
void release_file_pages(const void* data, std::size_t bytes) noexcept {
  with_whole_pages(data, bytes, [](void* begin, std::size_t size) { ::VirtualUnlock(begin, size); });
}

void* allocate_aligned(std::size_t bytes, std::size_t alignment) noexcept { return ::_aligned_malloc(bytes, alignment); }

void free_aligned(void* data) noexcept { ::_aligned_free(data); }

}  // namespace sdx
