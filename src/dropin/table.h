#pragma once
// The function table that programs get from GetApi.

#include <dropin/slots.h>

#include "dropin/abi.h"

namespace sdx::dropin {

// Functions by their places. Each subject sets its own with a function `fill_…` that build_table() calls. All others answer
// ORT_NOT_IMPLEMENTED with the function's name, or nothing, or 0, depending on their result (slots.txt).
struct Table {
  using Function = void (*)();
  Function functions[kSlotCount];

  template <class R, class... Args>
  void set(Slot slot, R (*function)(Args...)) {
    functions[static_cast<unsigned>(slot)] = reinterpret_cast<Function>(function);
  }
  template <class R, class... Args>
  void set(Slot slot, R (*function)(Args...) noexcept) {
    functions[static_cast<unsigned>(slot)] = reinterpret_cast<Function>(function);
  }
};

// The one table, made when it is first asked for. The same for all versions. Thread-safe.
const Table& table();
// The functions of places that no subject sets: a table of these alone.
const Table& missing_table();
// The same as programs see it.
const OrtApi* api();
// The result of OrtGetApiBase: its GetApi answers NULL for versions other than 1 to kNewestApi, with a line on stderr.
const OrtApiBase* api_base();

// By subject; each is defined in the file of its subject.
void fill_allocators(Table& table);
void fill_attributes(Table& table);
void fill_compatibility(Table& table);
void fill_compile(Table& table);
void fill_containers(Table& table);
void fill_devices(Table& table);
void fill_domains(Table& table);
void fill_editor(Table& table);
void fill_env(Table& table);
void fill_external_info(Table& table);
void fill_io_binding(Table& table);
void fill_kernel_contexts(Table& table);
void fill_kernel_infos(Table& table);
void fill_key_values(Table& table);
void fill_lora(Table& table);
void fill_memory_info(Table& table);
void fill_metadata(Table& table);
void fill_options(Table& table);
void fill_providers(Table& table);
void fill_run(Table& table);
void fill_run_options(Table& table);
void fill_session(Table& table);
void fill_shape_inference(Table& table);
void fill_shared_allocators(Table& table);
void fill_sparse(Table& table);
void fill_standalone(Table& table);
void fill_status(Table& table);
void fill_strings(Table& table);
void fill_tensors(Table& table);
void fill_threads(Table& table);
void fill_types(Table& table);

}  // namespace sdx::dropin
