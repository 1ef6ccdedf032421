#include <fmt/format.h>

#include <memory>
#include <vector>

#include "base/system/file.h"
#include "base/system/windows/api.h"

// Behind api.h, which it needs.
#include <aclapi.h>

namespace sdx {
namespace {

// What lets others change a file, or what a folder has.
constexpr DWORD kChanging = FILE_WRITE_DATA | FILE_APPEND_DATA | DELETE | WRITE_DAC | WRITE_OWNER | GENERIC_WRITE | GENERIC_ALL;

using Bytes = std::vector<std::byte>;

PSID sid_in(Bytes& bytes) { return bytes.data(); }

Bytes well_known(WELL_KNOWN_SID_TYPE type) {
  DWORD size = SECURITY_MAX_SID_SIZE;
  Bytes sid(size);
  if (::CreateWellKnownSid(type, nullptr, sid_in(sid), &size) == 0) sid.clear();
  return sid;
}

// TOKEN_USER of this process.
Bytes own_user() {
  HANDLE token = nullptr;
  if (::OpenProcessToken(::GetCurrentProcess(), TOKEN_QUERY, &token) == 0) return {};
  DWORD size = 0;
  ::GetTokenInformation(token, TokenUser, nullptr, 0, &size);
  Bytes user(size);
  if (::GetTokenInformation(token, TokenUser, user.data(), size, &size) == 0) user.clear();
  ::CloseHandle(token);
  return user;
}

bool is_one_of(PSID sid, std::initializer_list<WELL_KNOWN_SID_TYPE> types) {
  for (const WELL_KNOWN_SID_TYPE type : types) {
    Bytes known = well_known(type);
    if (!known.empty() && ::EqualSid(sid, sid_in(known)) != 0) return true;
  }
  return false;
}

bool is_trusted(PSID owner) {
  Bytes user = own_user();
  if (!user.empty() && ::EqualSid(owner, reinterpret_cast<const TOKEN_USER*>(user.data())->User.Sid) != 0) return true;
  return is_one_of(owner, {WinLocalSystemSid, WinBuiltinAdministratorsSid});
}

// Whether everybody, or every user of the machine, may change it.
bool others_may_change(PACL list) {
  if (list == nullptr) return true;  // no list: all may do all
  for (DWORD i = 0; i < list->AceCount; ++i) {
    void* entry = nullptr;
    if (::GetAce(list, i, &entry) == 0) continue;
    const auto* const allowed = static_cast<const ACCESS_ALLOWED_ACE*>(entry);
    const bool for_itself = (allowed->Header.AceFlags & INHERIT_ONLY_ACE) == 0;
    if (allowed->Header.AceType != ACCESS_ALLOWED_ACE_TYPE || !for_itself || (allowed->Mask & kChanging) == 0) continue;
    const auto sid = const_cast<DWORD*>(&allowed->SidStart);
    if (is_one_of(sid, {WinWorldSid, WinBuiltinUsersSid, WinAuthenticatedUserSid, WinBuiltinGuestsSid})) return true;
  }
  return false;
}

}  // namespace

std::string distrust_of(const std::filesystem::path& path) {
  PSID owner = nullptr;
  PACL list = nullptr;
  PSECURITY_DESCRIPTOR all = nullptr;
  const DWORD error =
      ::GetNamedSecurityInfoW(windows::long_path(path).c_str(), SE_FILE_OBJECT,
                              OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION, &owner, nullptr, &list, nullptr, &all);
  if (error != ERROR_SUCCESS) return "";
  const std::unique_ptr<void, decltype(&::LocalFree)> held(all, ::LocalFree);
  if (owner != nullptr && !is_trusted(owner)) {
    return fmt::format("'{}' belongs neither to this user nor to the administrators", text_of(path));
  }
  if (others_may_change(list)) {
    return fmt::format(
        "users other than its owner may write to '{0}'; to use it: icacls \"{0}\" /inheritance:r /grant:r "
        "\"%USERNAME%:(OI)(CI)F\"",
        text_of(path));
  }
  return "";
}

}  // namespace sdx
