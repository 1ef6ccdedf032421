#include "providers/table.h"

namespace sdx {

// The providers of the build, one line each: a folder's name here, whose `find` answers for the names that it knows. They are
// asked in this order.
#define SDX_PROVIDERS(FOLDER) \
  FOLDER(cpu)                 \
  FOLDER(openvino)            \
  FOLDER(fault)               \
  FOLDER(vulkan)              \
  FOLDER(ort)

#define SDX_DECLARE(folder)                    \
  namespace folder {                           \
  const Provider* find(std::string_view name); \
  }
SDX_PROVIDERS(SDX_DECLARE)

namespace {

struct Entry {
  std::string_view folder;
  const Provider* (*find)(std::string_view name);
};

#define SDX_ENTRY(folder) {#folder, &folder::find},
constexpr Entry kTable[] = {SDX_PROVIDERS(SDX_ENTRY)};

}  // namespace

std::vector<const Provider*> own_providers() {
  std::vector<const Provider*> own;
  for (const Entry& e : kTable) {
    if (const Provider* p = e.find(e.folder)) own.push_back(p);
  }
  return own;
}

const Provider* find_provider(std::string_view short_name) {
  for (const Entry& e : kTable) {
    if (const Provider* p = e.find(short_name)) return p;
  }
  return nullptr;
}

}  // namespace sdx
