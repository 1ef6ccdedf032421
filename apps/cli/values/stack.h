#pragma once
// Several samples in one run.

#include <optional>
#include <vector>

#include <sdx/session.hpp>

namespace sdx::cli {

class Stack {
 public:
  explicit Stack(const std::vector<ValueSpec>& specs) : specs_(specs) {}

  // The samples' values on top of each other along axis 0, for inputs whose first axis is open; inputs whose first axis is fixed
  // must be the same tensor in all samples. nullopt where element types or shapes differ, or a sample has more than one row.
  std::optional<NamedValues> stacked(const std::vector<const NamedValues*>& samples) const;
  // The outputs of such a run, row by row; nullopt unless each has `count` rows.
  static std::optional<std::vector<NamedValues>> split(const NamedValues& outputs, std::size_t count);

 private:
  const std::vector<ValueSpec>& specs_;
};

}  // namespace sdx::cli
