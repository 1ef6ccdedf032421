#pragma once
// Marks functions that libsdx exports besides its public interface: for the command of the same build only. See docs/map.md.

#include <sdx/export.hpp>

#define SDX_TOOLS_API SDX_API
