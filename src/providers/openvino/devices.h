#pragma once
// Why OpenVINO has no such device.

#include <span>
#include <string>
#include <vector>

#include "base/system/dynlib.h"
#include "providers/interface/diagnose.h"
#include "providers/interface/machine.h"
#include "providers/openvino/library.h"

namespace sdx::openvino {

// Empty if each device of `wanted` ("GPU", "GPU.1", "HETERO:NPU,CPU", "AUTO") is among `present`. Otherwise the reason, as far as
// files of the machine show it: no hardware, no device node, no library of the driver.
Diagnosis missing_device(const std::string& wanted, std::span<const Device> present, const MachineFacts& machine,
                         const LoaderView& view);

// "GPU.0: Intel(R) Arc(TM) A770 Graphics".
std::vector<std::string> describe(std::span<const Device> devices);

}  // namespace sdx::openvino
