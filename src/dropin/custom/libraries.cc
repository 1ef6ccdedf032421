#include "dropin/custom/libraries.h"

#include "base/error.h"
#include "base/system/loader.h"
#include "dropin/custom/operators.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {

session::CustomOps operators_of_library(const std::shared_ptr<void>& library, const std::string& shown) {
  const std::string what = "the operators of '" + shown + "' cannot be used: ";
  const auto enter = reinterpret_cast<RegisterCustomOps>(symbol_of(library.get(), kRegisterCustomOps));
  if (enter == nullptr) fail(ErrorCode::invalid_argument, "{}it does not export {}", what, kRegisterCustomOps);
  OrtSessionOptions options;
  options.kept.push_back(library);
  try {
    throw_status(enter(&options, api_base()), what);
    return make_operators(options.domains, std::make_shared<const KernelHost>(KernelHost{{}, {}, options.kept}), shown);
  } catch (const Error&) {
    throw;
  } catch (const OrtError& e) {
    fail(ErrorCode::invalid_argument, "{}{}", what, e.message);
  } catch (const std::exception& e) {
    fail(ErrorCode::invalid_argument, "{}{}", what, e.what());
  } catch (...) {
    fail(ErrorCode::invalid_argument, "{}an exception of unknown type", what);
  }
}

}  // namespace sdx::dropin
