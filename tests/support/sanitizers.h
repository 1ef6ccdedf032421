#pragma once
// Whether this program was built with a sanitizer that changes how memory behaves.

namespace sdx::testing {

// AddressSanitizer keeps freed memory for a while, and ends the process with a report and an exit code where a signal would.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#else
inline constexpr bool kAddressSanitizer = false;
#endif

}  // namespace sdx::testing
