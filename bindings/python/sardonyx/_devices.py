"""Devices and memory as ONNX Runtime describes them. Values of this engine live in the CPU's memory; devices of providers are listed."""

from __future__ import annotations

import enum
from typing import Any, Mapping, Sequence

from ._errors import InvalidArgument, NotImplemented
from ._sardonyx import ort_name
from ._sardonyx import providers as engine_providers
from ._sardonyx import version as engine_version

_VENDORS = {"cuda": 0x10DE, "dml": 0x1414, "cann": 0x19E5}
_DEVICE_TYPES = {"cpu": 0, "cuda": 1, "dml": 1, "webgpu": 1, "gpu": 1, "fpga": 2, "npu": 3, "cann": 3}


class OrtDeviceVendorId(enum.IntEnum):
    """Vendors by their PCI numbers."""

    NONE = 0x0000
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


class OrtAllocatorType(enum.IntEnum):
    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(enum.IntEnum):
    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtMemoryInfoDeviceType(enum.IntEnum):
    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtDeviceMemoryType(enum.IntEnum):
    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtHardwareDeviceType(enum.IntEnum):
    CPU = 0
    GPU = 1
    NPU = 2


class OrtExecutionProviderDevicePolicy(enum.IntEnum):
    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class ArenaExtendStrategy(enum.IntEnum):
    kNextPowerOfTwo = 0
    kSameAsRequested = 1


kNextPowerOfTwo, kSameAsRequested = ArenaExtendStrategy


class OrtDevice:
    """A kind of device, and which one of it. OrtDevice(type, memory, index) or OrtDevice(type, memory, vendor, index)."""

    _numbers: tuple[int, ...]

    def __init__(self, *numbers: Any) -> None:
        if len(numbers) == 1 and isinstance(numbers[0], OrtDevice):
            numbers = numbers[0]._numbers
        elif len(numbers) == 3:
            vendor = int(OrtDeviceVendorId.NVIDIA) if numbers[0] == 1 else 0
            numbers = (numbers[0], numbers[1], vendor, numbers[2])
        if len(numbers) != 4:
            raise TypeError("a device is its type, memory type, vendor (may be left out) and index")
        self._numbers = tuple(int(n) for n in numbers)

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        name = ort_device_name.lower()
        if name not in _DEVICE_TYPES:
            raise InvalidArgument(f"Unsupported device type: {ort_device_name}; known: {', '.join(_DEVICE_TYPES)}")
        return OrtDevice(_DEVICE_TYPES[name], 0, _VENDORS.get(name, 0) if vendor_id < 0 else vendor_id, device_id)

    @staticmethod
    def cpu() -> int:
        return 0

    @staticmethod
    def gpu() -> int:
        return 1

    cuda = dml = webgpu = gpu

    @staticmethod
    def fpga() -> int:
        return 2

    @staticmethod
    def npu() -> int:
        return 3

    cann = npu

    @staticmethod
    def default_memory() -> int:
        return 0

    def device_type(self) -> int:
        return self._numbers[0]

    def device_mem_type(self) -> int:
        return self._numbers[1]

    def device_vendor_id(self) -> int:
        return self._numbers[2]

    def device_id(self) -> int:
        return self._numbers[3]

    mem_type = device_mem_type
    vendor_id = device_vendor_id

    def _get_c_device(self) -> OrtDevice:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OrtDevice) and self._numbers == other._numbers

    def __hash__(self) -> int:
        return hash(self._numbers)

    def __repr__(self) -> str:
        return f"OrtDevice(type={self._numbers[0]}, memory={self._numbers[1]}, vendor={self._numbers[2]}, index={self._numbers[3]})"


class OrtMemoryInfo:
    """Where memory is and who gives it. Only the CPU's can be used."""

    def __init__(self, name: str, allocator_type: OrtAllocatorType, device_id: int, mem_type: OrtMemType) -> None:
        known = ("Cpu", "Cuda", "CudaPinned", "DML", "WebGPU_Buffer", "Cann", "CannPinned", "OpenVINO_CPU", "OpenVINO_GPU", "QnnHtpShared", "HIP")
        if name not in known:
            raise InvalidArgument(f"Specified device is not supported: '{name}'; known: {', '.join(known)}. Try CreateMemoryInfo_V2")
        self.name = name
        self.allocator_type = OrtAllocatorType(allocator_type)
        self.device_id = int(device_id)
        self.mem_type = OrtMemType(mem_type)
        self.device_mem_type = OrtDeviceMemoryType.HOST_ACCESSIBLE if name.endswith("Pinned") else OrtDeviceMemoryType.DEFAULT
        self.device_vendor_id = 0x10DE if name.startswith("Cuda") else 0x19E5 if name.startswith("Cann") else 0

    @staticmethod
    def create_v2(
        name: str,
        device_type: OrtMemoryInfoDeviceType,
        vendor_id: int,
        device_id: int,
        device_mem_type: OrtDeviceMemoryType,
        alignment: int,
        allocator_type: OrtAllocatorType,
    ) -> OrtMemoryInfo:
        if alignment < 0 or alignment & (alignment - 1):
            raise InvalidArgument(f"an alignment is 0 or a power of two, received {alignment}")
        info = OrtMemoryInfo.__new__(OrtMemoryInfo)
        info.name = name
        info.allocator_type = OrtAllocatorType(allocator_type)
        info.device_id = int(device_id)
        info.mem_type = OrtMemType.DEFAULT
        info.device_mem_type = OrtDeviceMemoryType(device_mem_type)
        info.device_vendor_id = int(vendor_id)
        return info

    def __repr__(self) -> str:
        return f"OrtMemoryInfo(name='{self.name}', device_id={self.device_id})"


class OrtArenaCfg:
    """How ONNX Runtime's arena grows. Kept and given back; memory plans make an arena needless here."""

    _NAMES = (
        "max_mem",
        "arena_extend_strategy",
        "initial_chunk_size_bytes",
        "max_dead_bytes_per_chunk",
        "initial_growth_chunk_size_bytes",
        "max_power_of_two_extend_bytes",
    )

    def __init__(self, *values: Any) -> None:
        if len(values) == 1 and isinstance(values[0], Mapping):
            given = {str(k): int(v) for k, v in values[0].items()}
        elif len(values) == 4:
            given = dict(zip(self._NAMES, (int(v) for v in values)))
        else:
            raise TypeError("OrtArenaCfg takes a dict, or max_mem, arena_extend_strategy, initial_chunk_size_bytes and max_dead_bytes_per_chunk")
        for name in given:
            if name not in self._NAMES:
                raise InvalidArgument(f"Invalid OrtArenaCfg option: {name}; options: {', '.join(self._NAMES)}")
        for name in self._NAMES:
            setattr(self, name, given.get(name, 0 if name == "max_mem" else -1))


class OrtHardwareDevice:
    """A piece of hardware."""

    def __init__(self, kind: OrtHardwareDeviceType, vendor: str, vendor_id: int, device_id: int, metadata: dict[str, str]) -> None:
        self.type = kind
        self.vendor = vendor
        self.vendor_id = vendor_id
        self.device_id = device_id
        self.metadata = metadata


class OrtSyncStream:
    """A stream of a device. The CPU works in order: there is nothing to wait for."""

    def get_handle(self) -> int:
        return 0


class OrtEpDevice:
    """A provider together with hardware that it can use."""

    def __init__(self, name: str, version: str, device: OrtHardwareDevice) -> None:
        self.ep_name = name
        self.ep_vendor = "Sardonyx"
        self.ep_metadata = {"version": version}
        self.ep_options: dict[str, str] = {}
        self.device = device

    def memory_info(self, memory_type: OrtDeviceMemoryType = OrtDeviceMemoryType.DEFAULT) -> OrtMemoryInfo | None:
        """Where the caller's values for this device live: in the CPU's memory, whichever device computes."""
        return cpu_memory() if memory_type == OrtDeviceMemoryType.DEFAULT else None

    def create_sync_stream(self, options: Mapping[str, str] | None = None) -> OrtSyncStream:
        return OrtSyncStream()


def cpu_memory() -> OrtMemoryInfo:
    return OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 0, OrtMemType.DEFAULT)


_KINDS = {"CUDAExecutionProvider": (1, "NVIDIA"), "TensorrtExecutionProvider": (1, "NVIDIA"), "ROCMExecutionProvider": (1, "AMD"),
          "MIGraphXExecutionProvider": (1, "AMD"), "DmlExecutionProvider": (1, "MICROSOFT"), "QNNExecutionProvider": (2, "QUALCOMM")}  # fmt: skip


def get_ep_devices() -> list[OrtEpDevice]:
    """The providers that work on this machine, each with every device that it reports."""
    devices = []
    for provider in engine_providers():
        if not provider["available"]:
            continue
        kind, vendor = _KINDS.get(provider["ort_name"], (0, ""))
        number = int(OrtDeviceVendorId[vendor]) if vendor else 0
        for i, description in enumerate(provider["devices"] or [provider["hardware"]]):
            hardware = OrtHardwareDevice(OrtHardwareDeviceType(kind), vendor or "CPU", number, i if kind else 0, {"description": description})
            devices.append(OrtEpDevice(provider["ort_name"], provider["version"] or engine_version(), hardware))
    return devices


def get_hardware_devices() -> list[OrtHardwareDevice]:
    return [d.device for d in get_ep_devices()]


def providers_of(devices: Sequence[OrtEpDevice], options: Mapping[str, Any]) -> list[tuple[str, dict[str, str]]]:
    """What SessionOptions.add_provider_for_devices adds: the devices' one provider."""
    names = {d.ep_name for d in devices}
    if len(names) != 1:
        raise InvalidArgument(f"the devices must be of one provider, received {', '.join(sorted(names)) or 'none'}")
    return [(names.pop(), {str(k): str(v) for k, v in options.items()})]


def create_and_register_allocator(memory_info: OrtMemoryInfo, arena: OrtArenaCfg | None) -> None:
    """An allocator for all sessions. They share one already: nothing changes."""
    _check_cpu(memory_info)


def create_and_register_allocator_v2(
    provider: str, memory_info: OrtMemoryInfo, options: Mapping[str, str], arena: OrtArenaCfg | None
) -> None:
    ort_name(provider)
    _check_cpu(memory_info)


def _check_cpu(memory_info: OrtMemoryInfo) -> None:
    if memory_info.name != "Cpu":
        raise InvalidArgument(f"values live in the CPU's memory; memory '{memory_info.name}' is not available")


def register_execution_provider_library(name: str, path: str) -> None:
    """ONNX Runtime's plugins are loaded by ONNX Runtime's own library."""
    raise NotImplemented(
        f"provider library '{path}' cannot be loaded: plugins for ONNX Runtime need its own library; docs/providers.md says what works here"
    )


def unregister_execution_provider_library(name: str) -> None:
    raise InvalidArgument(f"no provider library is registered as '{name}'")


class OrtEpAssignedNode:
    def __init__(self, name: str, domain: str, op_type: str) -> None:
        self.name = name
        self.domain = domain
        self.op_type = op_type


class OrtEpAssignedSubgraph:
    """Nodes that one provider runs."""

    def __init__(self, ep_name: str, nodes: list[OrtEpAssignedNode]) -> None:
        self.ep_name = ep_name
        self._nodes = nodes

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        return list(self._nodes)
