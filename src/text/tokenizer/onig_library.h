#pragma once
// Oniguruma, loaded when a tokenizer has a regular expression for which we have no scanner; other tokenizers do not need the
// library. A static program has it inside.

#include <oniguruma.h>

namespace sdx::text {

struct OnigLibrary {
  decltype(&::onig_error_code_to_str) error_code_to_str;
  decltype(&::onig_initialize) initialize;
  decltype(&::onig_new) make;
  decltype(&::onig_free) free;
  decltype(&::onig_region_new) region_new;
  decltype(&::onig_region_free) region_free;
  decltype(&::onig_region_clear) region_clear;
  decltype(&::onig_new_match_param) new_match_param;
  decltype(&::onig_free_match_param) free_match_param;
  decltype(&::onig_initialize_match_param) initialize_match_param;
  decltype(&::onig_set_match_stack_limit_size_of_match_param) set_stack_limit;
  decltype(&::onig_set_retry_limit_in_match_of_match_param) set_retry_limit;
  decltype(&::onig_set_retry_limit_in_search_of_match_param) set_search_retry_limit;
  decltype(&::onig_search_with_param) search;
  OnigEncoding utf8;
  OnigSyntaxType* ruby;
};

// Stays loaded. Throws Error(io) where it is not installed.
const OnigLibrary& onig();

}  // namespace sdx::text
