#include "base/system/process.h"

#include <algorithm>
#include <cstdlib>
#include <cwchar>
#include <string_view>

#include "base/system/processes/environment.h"
#include "base/system/windows/api.h"

namespace sdx {
namespace {

std::filesystem::path folder_in(const wchar_t* variable) {
  const wchar_t* const text = ::_wgetenv(variable);
  return text == nullptr ? L"" : text;
}

}  // namespace

std::uint64_t process_id() noexcept { return ::GetCurrentProcessId(); }

void set_environment(const char* name, const char* value) noexcept { ::_putenv_s(name, value == nullptr ? "" : value); }

// Entries that begin with "=" are the current folders of drives.
std::vector<std::string> environment_entries() {
  std::vector<std::string> entries;
  wchar_t* const all = ::GetEnvironmentStringsW();
  for (const wchar_t* at = all; at != nullptr && *at != L'\0'; at += std::wcslen(at) + 1) {
    if (*at != L'=') entries.push_back(windows::narrow(at));
  }
  if (all != nullptr) ::FreeEnvironmentStringsW(all);
  return entries;
}

// GetVersionEx() tells programs a version that their manifest knows.
SystemNames system_names() {
  SystemNames names{"Windows", "", ""};
  RTL_OSVERSIONINFOW version{};
  version.dwOSVersionInfoSize = sizeof version;
  using GetVersion = LONG(WINAPI*)(RTL_OSVERSIONINFOW*);
  const auto get = windows::newer<GetVersion>(L"ntdll.dll", "RtlGetVersion");
  if (get != nullptr && get(&version) == 0) {
    names.release = std::to_string(version.dwMajorVersion) + "." + std::to_string(version.dwMinorVersion) + "." +
                    std::to_string(version.dwBuildNumber);
  }
  SYSTEM_INFO info{};
  ::GetNativeSystemInfo(&info);
  names.machine = info.wProcessorArchitecture == PROCESSOR_ARCHITECTURE_ARM64 ? "ARM64" : "AMD64";
  return names;
}

std::vector<std::string> listed_in(const char* variable) {
  const char* const text = std::getenv(variable);
  std::vector<std::string> out;
  for (std::string_view rest = text == nullptr ? "" : text; !rest.empty();) {
    const std::string_view entry = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    if (!entry.empty()) out.emplace_back(entry);
  }
  return out;
}

std::filesystem::path user_folder() { return folder_in(L"USERPROFILE"); }

std::filesystem::path user_cache_folder(const char* name) {
  const std::filesystem::path folder = folder_in(L"LOCALAPPDATA");
  return folder.is_absolute() ? folder / name : std::filesystem::path();
}

}  // namespace sdx
