#include "text/tokenizer/onig_library.h"

#include <dlfcn.h>

#include <string>

#include "base/error.h"
#include "base/system/own_library.h"

namespace sdx::text {
namespace {

template <class T>
void find(void* library, const char* name, T& to) {
  to = reinterpret_cast<T>(::dlsym(library, name));
  if (to == nullptr) fail(ErrorCode::io, "libonig.so.5 has no {}: version 6.9.5 or later is needed", name);
}

OnigLibrary load() {
  // The Python package has its own copy, which this one needs. Where that is missing, the system's.
  const std::string packaged = (folder_of(reinterpret_cast<const void*>(&load)) / "libsdx_onig.so").string();
  void* library = ::dlopen(packaged.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = ::dlopen("libonig.so.5", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    fail(ErrorCode::io,
         "this tokenizer's regular expression needs the library Oniguruma, which cannot be loaded ({}); install it (Debian: "
         "libonig5)",
         why == nullptr ? "no reason given" : why);
  }
  OnigLibrary o{};
  find(library, "onig_error_code_to_str", o.error_code_to_str);
  find(library, "onig_initialize", o.initialize);
  find(library, "onig_new", o.make);
  find(library, "onig_free", o.free);
  find(library, "onig_region_new", o.region_new);
  find(library, "onig_region_free", o.region_free);
  find(library, "onig_region_clear", o.region_clear);
  find(library, "onig_new_match_param", o.new_match_param);
  find(library, "onig_free_match_param", o.free_match_param);
  find(library, "onig_initialize_match_param", o.initialize_match_param);
  find(library, "onig_set_match_stack_limit_size_of_match_param", o.set_stack_limit);
  find(library, "onig_set_retry_limit_in_match_of_match_param", o.set_retry_limit);
  find(library, "onig_set_retry_limit_in_search_of_match_param", o.set_search_retry_limit);
  find(library, "onig_search_with_param", o.search);
  find(library, "OnigEncodingUTF8", o.utf8);
  find(library, "OnigSyntaxRuby", o.ruby);
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
