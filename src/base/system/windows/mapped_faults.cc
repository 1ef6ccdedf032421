#include <sdx/mapped_files.hpp>

#include "base/system/mapped_file.h"

// Windows refuses to cut a file short while a program has it mapped, so no part of one goes missing; a disk or a network that
// fails under a map ends the process, as everywhere without a handler.
namespace sdx {

struct MappedRange::Place {};

void survive_mapped_faults() {}

void check_mapped_files() { MappedFile::check_none_damaged(); }

MappedRange::MappedRange(const void* /*begin*/, std::size_t /*bytes*/) : place_(nullptr) {}
MappedRange::~MappedRange() = default;

bool MappedRange::damaged() const noexcept { return false; }

}  // namespace sdx
