// Memory.

#include <sdx/array/memory.hpp>

#include "tables.h"

namespace sdx::python::arrays {
namespace {

std::uint64_t get_active_memory() { return mx::get_active_memory(); }
std::uint64_t get_peak_memory() { return mx::get_peak_memory(); }
std::uint64_t get_cache_memory() { return mx::get_cache_memory(); }
std::uint64_t set_memory_limit(std::uint64_t limit) { return mx::set_memory_limit(limit); }
std::uint64_t set_cache_limit(std::uint64_t limit) { return mx::set_cache_limit(limit); }

}  // namespace

std::vector<Definition> memory_functions() {
  return {
      def<&get_active_memory>("get_active_memory()"),
      def<&get_peak_memory>("get_peak_memory()"),
      def<&mx::reset_peak_memory>("reset_peak_memory()"),
      def<&get_cache_memory>("get_cache_memory()"),
      def<&set_memory_limit>("_set_memory_limit(limit)"),
      def<&set_cache_limit>("set_cache_limit(limit)"),
      def<&mx::clear_cache>("clear_cache()"),
  };
}

}  // namespace sdx::python::arrays
