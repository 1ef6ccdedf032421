#pragma once
// Windows' interface without the parts that redefine ordinary words, and what its halves of base/system share.

#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX  // the compiler's own headers define it
#define NOMINMAX
#endif
#define NOGDI
#include <windows.h>
#undef small
#undef interface
#undef near
#undef far

#include <filesystem>
#include <string>
#include <string_view>

namespace sdx::windows {

// Puts the C library's number for the error of the last call, or for `error`, into errno.
void set_errno(DWORD error) noexcept;
inline void set_errno() noexcept { set_errno(::GetLastError()); }

// The system's own words for an error, in UTF-8: "The specified module could not be found.".
std::string words_of(DWORD error);

// As the system's functions take it: without the limit of 260 letters, which programs without a manifest have.
std::wstring long_path(const std::filesystem::path& path);

std::wstring wide(std::string_view utf8);
std::string narrow(std::wstring_view utf16);

// What is only in newer releases of Windows, or of Wine; null: not there.
template <class F>
F newer(const wchar_t* library, const char* function) noexcept {
  const HMODULE module = ::GetModuleHandleW(library);
  return module == nullptr ? nullptr : reinterpret_cast<F>(reinterpret_cast<void*>(::GetProcAddress(module, function)));
}

}  // namespace sdx::windows
