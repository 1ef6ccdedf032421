// Themes that stand apart from sessions and values.

#include <initializer_list>

#include "dropin/table.h"

namespace sdx::dropin {

void fill_attributes(Table& table);
void fill_compatibility(Table& table);
void fill_compile(Table& table);
void fill_devices(Table& table);
void fill_domains(Table& table);
void fill_editor(Table& table);
void fill_external_info(Table& table);
void fill_kernel_contexts(Table& table);
void fill_kernel_infos(Table& table);
void fill_lora(Table& table);
void fill_shape_inference(Table& table);
void fill_standalone(Table& table);

void fill_rest(Table& table) {
  for (const auto fill :
       {fill_attributes, fill_compatibility, fill_compile, fill_devices, fill_domains, fill_editor, fill_external_info,
        fill_kernel_contexts, fill_kernel_infos, fill_lora, fill_shape_inference, fill_standalone})
    fill(table);
}

}  // namespace sdx::dropin
