#include "base/system/process.h"

#include <cstdlib>

#include "base/system/windows/api.h"

namespace sdx {

std::uint64_t process_id() noexcept { return ::GetCurrentProcessId(); }

void set_environment(const char* name, const char* value) noexcept { ::_putenv_s(name, value == nullptr ? "" : value); }

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

std::filesystem::path user_cache_folder(const char* name) {
  const wchar_t* const local = ::_wgetenv(L"LOCALAPPDATA");
  const std::filesystem::path folder = local == nullptr ? L"" : local;
  return folder.is_absolute() ? folder / name : std::filesystem::path();
}

}  // namespace sdx
