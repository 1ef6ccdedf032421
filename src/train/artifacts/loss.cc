#include <sdx/train/artifacts.hpp>

#include <array>
#include <utility>

#include "base/error.h"

namespace sdx::train {

Loss loss_named(std::string_view name) {
  constexpr std::array<std::pair<const char*, Loss>, 5> known{{{"cross-entropy", Loss::cross_entropy},
                                                               {"mse", Loss::mse},
                                                               {"bce-with-logits", Loss::bce_with_logits},
                                                               {"l1", Loss::l1},
                                                               {"none", Loss::none}}};
  for (const auto& [word, loss] : known) {
    if (name == word) return loss;
  }
  fail(ErrorCode::invalid_argument, "'{}' is not a loss; permitted: cross-entropy, mse, bce-with-logits, l1, none", name);
}

}  // namespace sdx::train
