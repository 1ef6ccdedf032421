#include "text/tokenizer/onig_library.h"

#include <string>

#include "base/error.h"
#include "base/system/dynlib.h"

namespace sdx::text {
namespace {

#if defined(SDX_STATIC)
OnigLibrary find() {
  return {.error_code_to_str = &::onig_error_code_to_str,
          .initialize = &::onig_initialize,
          .make = &::onig_new,
          .free = &::onig_free,
          .region_new = &::onig_region_new,
          .region_free = &::onig_region_free,
          .region_clear = &::onig_region_clear,
          .new_match_param = &::onig_new_match_param,
          .free_match_param = &::onig_free_match_param,
          .initialize_match_param = &::onig_initialize_match_param,
          .set_stack_limit = &::onig_set_match_stack_limit_size_of_match_param,
          .set_retry_limit = &::onig_set_retry_limit_in_match_of_match_param,
          .set_search_retry_limit = &::onig_set_retry_limit_in_search_of_match_param,
          .search = &::onig_search_with_param,
          .utf8 = &::OnigEncodingUTF8,
          .ruby = &::OnigSyntaxRuby};
}
#else
OnigLibrary find() {
  // The Python package has its own copy, which this one needs. Where that is missing, the system's.
  std::string why;
  auto library = DynamicLibrary::open_for_good(folder_of(reinterpret_cast<const void*>(&find)) / "libsdx_onig.so", why);
  if (library == nullptr) library = DynamicLibrary::open_for_good("libonig.so.5", why);
  if (library == nullptr) {
    fail(ErrorCode::io,
         "this tokenizer's regular expression needs the library Oniguruma, which cannot be loaded ({}); install it (Debian: "
         "libonig5)",
         why);
  }
  OnigLibrary o{};
  library->find("onig_error_code_to_str", o.error_code_to_str);
  library->find("onig_initialize", o.initialize);
  library->find("onig_new", o.make);
  library->find("onig_free", o.free);
  library->find("onig_region_new", o.region_new);
  library->find("onig_region_free", o.region_free);
  library->find("onig_region_clear", o.region_clear);
  library->find("onig_new_match_param", o.new_match_param);
  library->find("onig_free_match_param", o.free_match_param);
  library->find("onig_initialize_match_param", o.initialize_match_param);
  library->find("onig_set_match_stack_limit_size_of_match_param", o.set_stack_limit);
  library->find("onig_set_retry_limit_in_match_of_match_param", o.set_retry_limit);
  library->find("onig_set_retry_limit_in_search_of_match_param", o.set_search_retry_limit);
  library->find("onig_search_with_param", o.search);
  library->find("OnigEncodingUTF8", o.utf8);
  library->find("OnigSyntaxRuby", o.ruby);
  return o;
}
#endif

OnigLibrary load() {
  OnigLibrary o = find();
  OnigEncoding encodings[] = {o.utf8};
  if (const int code = o.initialize(encodings, 1); code != ONIG_NORMAL) {
    fail(ErrorCode::runtime_failure, "Oniguruma cannot be used: error {}", code);
  }
  return o;
}

}  // namespace

const OnigLibrary& onig() {
  static const OnigLibrary library = load();
  return library;
}

}  // namespace sdx::text
