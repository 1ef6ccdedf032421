#pragma once
// Memory by pages, and what the machine has of it.

#include <cstddef>
#include <cstdint>

#include "base/system/file.h"
#include "base/tools_api.h"

namespace sdx {

SDX_TOOLS_API std::size_t page_bytes() noexcept;
// Of the whole machine; 0: the system does not say.
SDX_TOOLS_API std::uint64_t machine_memory() noexcept;

// Zeroed memory for reading and writing, which takes room only where it is touched. Null with errno. `all`: it will be touched
// everywhere, so Linux refuses at once what is far more than there is.
SDX_TOOLS_API void* take_pages(std::size_t bytes, bool all = false) noexcept;
SDX_TOOLS_API void give_back_pages(void* pages, std::size_t bytes) noexcept;
// Of take_pages().
SDX_TOOLS_API void make_read_only(void* pages, std::size_t bytes) noexcept;
// Asks for huge pages where the whole ones of 2 MiB inside are. Advice: a refusal changes nothing.
SDX_TOOLS_API void prefer_huge_pages(void* data, std::size_t bytes) noexcept;
// Gives the memory of the whole pages inside back, with their contents. They may be used again, and then have any content.
SDX_TOOLS_API void forget_pages(void* data, std::size_t bytes) noexcept;

// An open file, read-only, for as long as it is mapped: it may be closed meanwhile. Null with errno.
SDX_TOOLS_API const void* map_file(const File& file, std::size_t bytes) noexcept;
SDX_TOOLS_API void unmap_file(const void* data, std::size_t bytes) noexcept;
// The whole pages inside are not needed for now: they are read from the file again.
SDX_TOOLS_API void release_file_pages(const void* data, std::size_t bytes) noexcept;

// Uninitialised, for free_aligned() only; null: there is none. `alignment`: a power of two.
SDX_TOOLS_API void* allocate_aligned(std::size_t bytes, std::size_t alignment) noexcept;
SDX_TOOLS_API void free_aligned(void* data) noexcept;

}  // namespace sdx
