#pragma once
// Putting a folder into place, and room on the disk.

#include <cstddef>
#include <filesystem>
#include <system_error>

#include "base/system/file.h"
#include "base/tools_api.h"

namespace sdx {

// Removes a folder and all that is in it, and then lets its lock go (open_folder_lock()). Windows, where the lock is a file in
// the folder, has to let it go before.
SDX_TOOLS_API std::error_code remove_locked_folder(const std::filesystem::path& folder, File& lock) noexcept;

// Exchanges the names of two files or folders at once. False with errno where the file system cannot, as on Windows.
SDX_TOOLS_API bool exchange_names(const std::filesystem::path& a, const std::filesystem::path& b) noexcept;

// Memory for reading and writing, whose contents are in a file without a name, in the folder for temporary files. The disk's room
// for it is taken at once. Null with errno.
SDX_TOOLS_API void* take_disk_memory(std::size_t bytes) noexcept;
SDX_TOOLS_API void give_back_disk_memory(void* memory, std::size_t bytes) noexcept;

}  // namespace sdx
