// The compiled part of {fmt}, built here so that programs need no libfmt.so: Debian's static libfmt.a is not
// position-independent. Works with {fmt} 9 to 12.

#include <fmt/format-inl.h>

// What {fmt}'s headers declare and leave to its library, for char: nothing here formats wide characters.
FMT_BEGIN_NAMESPACE
namespace detail {

template FMT_API auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;
template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
#if FMT_VERSION < 110000  // a plain function since
template FMT_API void vformat_to(buffer<char>&, string_view, format_args, locale_ref);
#endif
using Locale = locale_ref;  // of this namespace or, in {fmt} 12, of the outer one

}  // namespace detail

template FMT_API auto detail::Locale::get<std::locale>() const -> std::locale;

FMT_END_NAMESPACE
