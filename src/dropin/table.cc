#include "dropin/table.h"

#include <cstdio>
#include <string>
#include <utility>

#include "dropin/status.h"

namespace sdx::dropin {
namespace {

template <std::size_t place>
OrtStatus* missing_status() noexcept {
  return make_status(ORT_NOT_IMPLEMENTED, std::string(kSlots[place].name) + " is not implemented by Sardonyx");
}
void missing_void() noexcept {}
std::uintptr_t missing_value() noexcept { return 0; }

template <std::size_t place>
Table::Function missing() {
  switch (kSlots[place].returns) {
    case Returns::status_: return reinterpret_cast<Table::Function>(&missing_status<place>);
    case Returns::void_: return &missing_void;
    case Returns::value_: break;
  }
  return reinterpret_cast<Table::Function>(&missing_value);
}

template <std::size_t... places>
Table all_missing(std::index_sequence<places...>) {
  return {{missing<places>()...}};
}

Table build_table() {
  Table table = missing_table();
  for (const auto fill :
       {fill_allocators,   fill_attributes, fill_compatibility, fill_compile,       fill_containers,      fill_devices,
        fill_domains,      fill_editor,     fill_env,           fill_external_info, fill_io_binding,      fill_kernel_contexts,
        fill_kernel_infos, fill_key_values, fill_lora,          fill_memory_info,   fill_metadata,        fill_options,
        fill_providers,    fill_run,        fill_run_options,   fill_session,       fill_shape_inference, fill_shared_allocators,
        fill_sparse,       fill_standalone, fill_status,        fill_strings,       fill_tensors,         fill_threads,
        fill_types})
    fill(table);
  return table;
}

const OrtApi* get_api(std::uint32_t version) {
  if (version >= 1 && version <= kNewestApi) return api();
  std::fprintf(stderr,
               "The requested API version [%u] is not available, only API versions [1, %u] are supported in this build. "
               "Current ORT Version is: %s (Sardonyx)\n",
               version, kNewestApi, SDX_DROPIN_VERSION);
  return nullptr;
}
const char* version_string() { return SDX_DROPIN_VERSION; }

}  // namespace

const Table& missing_table() {
  static const Table made = all_missing(std::make_index_sequence<kSlotCount>());
  return made;
}

const Table& table() {
  static const Table made = build_table();
  return made;
}

const OrtApi* api() { return reinterpret_cast<const OrtApi*>(table().functions); }

const OrtApiBase* api_base() {
  static constexpr OrtApiBase base{&get_api, &version_string};
  return &base;
}

}  // namespace sdx::dropin
