"""Where the names of ONNX Runtime's package come from: module of `sardonyx` by name. Each is imported when somebody asks for it."""

from __future__ import annotations

import importlib
from typing import Any, Callable, Mapping

_SOURCES = {
    "": "InferenceSession ModelMetadata NodeArg RunOptions SessionOptions get_all_providers get_device "
    "set_default_logger_severity set_default_logger_verbosity set_seed",
    "_dropin_gpu": "get_available_providers",
    "_enums": "ExecutionMode ExecutionOrder GraphOptimizationLevel",
    "_values": "IOBinding OrtValue SessionIOBinding",
    "_sparse": "OrtSparseFormat SparseTensor",
    "_adapters": "AdapterFormat LoraAdapter",
    "_logging": "set_default_logger_callback",
    "_model_package": "ModelPackage ModelPackageComponentContext ModelPackageContext ModelPackageOptions ModelPackageWriteMode",
    "_compiler": "ModelCompiler OrtCompileApiFlags OrtExternalInitializerInfo",
    "_process": "OrtEpContextData OrtEpContextDataBuffer copy_tensors disable_telemetry_events enable_telemetry_events get_build_info "
    "has_collective_ops preload_dlls print_debug_info set_global_thread_pool_sizes",
    "_devices": "OrtAllocatorType OrtArenaCfg OrtDevice OrtDeviceMemoryType OrtDeviceVendorId OrtEpAssignedNode OrtEpAssignedSubgraph "
    "OrtEpDevice OrtExecutionProviderDevicePolicy OrtHardwareDevice OrtHardwareDeviceType OrtMemType OrtMemoryInfo "
    "OrtMemoryInfoDeviceType OrtSyncStream create_and_register_allocator create_and_register_allocator_v2 get_ep_devices "
    "register_execution_provider_library unregister_execution_provider_library",
}
# Names that only onnxruntime.capi has.
_LOWER = {
    "_errors": "DeviceReset EPFail EngineError Fail InvalidArgument InvalidGraph InvalidProtobuf ModelLoadCanceled ModelLoaded "
    "ModelRequiresCompilation NoModel NoSuchFile NotFound NotImplemented RuntimeException",
    "_lower": "InferenceSession",
    "_values": "OrtValueVector",
    "_sparse": "SparseBlockSparseView SparseCooView SparseCsrView",
    "_devices": "ArenaExtendStrategy get_hardware_devices kNextPowerOfTwo kSameAsRequested",
    "_dlpack": "is_dlpack_uint8_tensor",
    "_process": "OrtCompiledModelCompatibility OrtDeviceEpIncompatibilityReason SessionObjectInitializer get_default_session_options "
    "get_session_initializer get_compatibility_info_from_model get_compatibility_info_from_model_bytes "
    "get_model_compatibility_for_ep_devices get_hardware_device_ep_incompatibility_details",
}


def _table(sources: Mapping[str, str]) -> dict[str, str]:
    return {name: module for module, names in sources.items() for name in names.split()}


PUBLIC = _table(_SOURCES)
LOWER = {**PUBLIC, **_table(_LOWER)}


def resolver(table: Mapping[str, str], into: dict[str, Any]) -> Callable[[str], Any]:
    """A module's __getattr__ that fetches the table's names."""

    def get(name: str) -> Any:
        if name not in table:
            raise AttributeError(f"module '{into['__name__']}' has no attribute '{name}'")
        module = importlib.import_module(f"sardonyx.{table[name]}" if table[name] else "sardonyx")
        value = into[name] = getattr(module, name)
        return value

    return get
