#pragma once
// Marks what libsdx exports beside its public interface: for the command of the same build, and for nobody else. See docs/map.md.

#include <sdx/export.hpp>

#define SDX_TOOLS_API SDX_API
