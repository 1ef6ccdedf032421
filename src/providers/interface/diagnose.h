#pragma once
// Why a provider cannot be used on a machine, and what to do about it.

#include <string>
#include <vector>

#include "base/system/dynlib.h"
#include "providers/interface/machine.h"
#include "providers/interface/provider.h"

namespace sdx {

// Facts about the runtime behind a provider ("ONNX Runtime" for most).
struct RuntimeFacts {
  std::string runtime = "ONNX Runtime";
  std::string library;                // path of its library; empty: not found
  std::string library_problem;        // why it cannot be used: "not found in …", the loader's reason; empty: it can
  std::string version;                // "1.23.2"
  std::vector<std::string> built_in;  // names of the execution providers that it lists
  std::string provider_library;       // path of the library of this provider alone, where it has one and it exists
  std::string provider_library_name;  // its file name, where this provider comes in one of its own; empty: built into the runtime
};

struct Diagnosis {
  std::string reason;  // everything that stands in the way, the most fundamental first; empty: nothing that files can tell
  std::string hint;    // the cure of the first
};

// Looks, in this order, at: platform, hardware, driver (missing, not loaded, no device node, too old for the CUDA that the
// provider's library needs), the runtime's library, whether it carries the provider, and what the provider's own library needs.
// Pure apart from reading the libraries. `quick`: stop at the first thing that is wrong.
Diagnosis diagnose(const ProviderName& provider, const MachineFacts& machine, const RuntimeFacts& runtime, const LoaderView& view,
                   bool quick = false);

// The major version of CUDA that a library was built for, from the libraries that it needs; 0: none.
int cuda_of(const std::string& library);
// The oldest Linux driver that runs this CUDA (NVIDIA, "CUDA Compatibility": minor version compatibility); "" where not known.
std::string oldest_driver(int cuda);

// The Python packages that contain a provider's ONNX Runtime: "onnxruntime-gpu", "onnxruntime onnxruntime-qnn".
std::string ort_package(std::string_view provider);

}  // namespace sdx
