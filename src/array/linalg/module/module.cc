// libsdx_linalg.so: decompositions of matrices by Eigen.

#include <exception>
#include <new>

#include "array/linalg/module/parts.h"

namespace sdx::array::detail {
namespace {

LinalgOutcome dispatch(const LinalgRequest& r) {
  if (r.what <= Decomposition::qr) return run_factors(r);
  return r.what <= Decomposition::eigvals ? run_eigen(r) : run_svd(r);
}

// Errors are returned: no exception may leave the library.
LinalgOutcome run(const LinalgRequest* request) {
  try {
    return dispatch(*request);
  } catch (const std::bad_alloc&) {
    return LinalgOutcome::no_memory;
  } catch (...) {
    return LinalgOutcome::failed;
  }
}

const LinalgModule kModule{module_head<LinalgModule>(SDX_VERSION), &run};

}  // namespace
}  // namespace sdx::array::detail

extern "C" __attribute__((visibility("default"))) const sdx::ModuleHead* sdx_linalg_module() {
  return &sdx::array::detail::kModule.head;
}
