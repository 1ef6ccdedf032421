"""sdx_vulkan_tests under the validation layer of Khronos: validation.py TESTS. Skipped (exit code 77) where the layer is not installed."""

import os
import subprocess
import sys

LAYER = "VK_LAYER_KHRONOS_validation"
SKIPPED = 77
LIMIT_S = 900


def main():
    environment = {**os.environ, "VK_INSTANCE_LAYERS": LAYER, "VK_LOADER_DEBUG": "error,layer"}
    done = subprocess.run([sys.argv[1]], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          timeout=LIMIT_S, check=False)
    if f"Insert instance layer \"{LAYER}\"" not in done.stdout:
        print(f"the loader finds no layer {LAYER} (Debian's vulkan-validationlayers), or there is no driver")
        return SKIPPED
    said = [line for line in done.stdout.splitlines() if "VUID-" in line or "Validation Error" in line]
    print("\n".join(said) or done.stdout[-2000:])
    return 1 if said or done.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
