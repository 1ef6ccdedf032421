// The packages that contain the libraries of providers.

#include <fmt/format.h>

#include <array>
#include <string>

#include "base/system/dynlib.h"

namespace sdx {
namespace {

// The part of CUDA that a library belongs to, and which CUDA its own number stands for (NVIDIA counts cuFFT, cuRAND and others on
// their own: cuFFT 11 is that of CUDA 12).
struct CudaLibrary {
  std::string_view stem;
  std::string_view pip;  // "nvidia-<pip>-cu12"; from CUDA 13 on without the number
  std::string_view what;
  int of_cuda_12;  // its number in CUDA 12
};
constexpr std::array<CudaLibrary, 9> kCuda{{
    {"libcudart.so", "cuda-runtime", "the CUDA runtime", 12},
    {"libcublas.so", "cublas", "cuBLAS", 12},
    {"libcublasLt.so", "cublas", "cuBLAS", 12},
    {"libcufft.so", "cufft", "cuFFT", 11},
    {"libcurand.so", "curand", "cuRAND", 10},
    {"libcusparse.so", "cusparse", "cuSPARSE", 12},
    {"libcusolver.so", "cusolver", "cuSOLVER", 11},
    {"libnvrtc.so", "cuda-nvrtc", "the CUDA run-time compiler", 12},
    {"libnvJitLink.so", "nvjitlink", "the CUDA linker", 12},
}};

struct OtherLibrary {
  std::string_view prefix;
  std::string_view package;
};
constexpr std::array<OtherLibrary, 21> kOther{{
    {"libcuda.so", "the NVIDIA driver (the package nvidia-driver; in a container, run it with the GPU: `docker run --gpus all`)"},
    {"libnvidia-ml.so", "the NVIDIA driver (the package nvidia-driver)"},
    {"libamdhip64.so", "the HIP runtime of ROCm (the package hip-runtime-amd)"},
    {"libhsa-runtime64.so", "the ROCm runtime (the package hsa-rocr)"},
    {"librocblas.so", "rocBLAS (the package rocblas)"},
    {"libhipblas", "hipBLAS (the package hipblas)"},
    {"libMIOpen.so", "MIOpen (the package miopen-hip)"},
    {"libmigraphx", "MIGraphX (the package migraphx)"},
    {"librccl.so", "RCCL (the package rccl)"},
    {"libhipfft.so", "hipFFT (the package hipfft)"},
    {"libhiprand.so", "hipRAND (the package hiprand)"},
    {"libopenvino", "OpenVINO (`pip install openvino`, or `pip install onnxruntime-openvino` for ONNX Runtime)"},
    {"libtbb", "Threading Building Blocks (the package libtbb12)"},
    {"libze_loader.so", "the Level Zero loader (the package libze1)"},
    {"libOpenCL.so", "the OpenCL loader (the package ocl-icd-libopencl1)"},
    {"libonnxruntime_providers_shared.so", "ONNX Runtime anew: its libraries belong into one folder"},
    {"libonnxruntime", "ONNX Runtime (`pip install onnxruntime`)"},
    {"libdnnl.so", "oneDNN (the package libdnnl3)"},
    {"libQnn", "Qualcomm's AI Engine Direct SDK (`pip install onnxruntime-qnn` brings its libraries)"},
    {"libstdc++.so", "a newer C++ library (the package libstdc++6)"},
    {"libgomp.so", "GNU OpenMP (the package libgomp1)"},
}};

}  // namespace

std::string package_of(std::string_view soname) {
  const VersionedName v = split_soname(soname);
  for (const CudaLibrary& c : kCuda) {
    if (v.stem != c.stem) continue;
    const int cuda = v.major < 0 ? 12 : 12 + (v.major - c.of_cuda_12);
    // cuRAND has been version 10 since CUDA 11.
    const bool unclear = c.stem == "libcurand.so";
    const std::string package = unclear || cuda == 12 ? fmt::format("nvidia-{}-cu12", c.pip)
                                : cuda < 12           ? fmt::format("nvidia-{}-cu11", c.pip)
                                                      : fmt::format("nvidia-{}", c.pip);
    return unclear ? fmt::format("{} (`pip install {}`)", c.what, package)
                   : fmt::format("{} of CUDA {} (`pip install {}`)", c.what, cuda, package);
  }
  if (v.stem.starts_with("libcudnn")) {
    if (v.major >= 0 && v.major < 9) return fmt::format("cuDNN {} (the package libcudnn{})", v.major, v.major);
    return fmt::format("cuDNN {0} (`pip install nvidia-cudnn-cu12`, or the package libcudnn{0}-cuda-12)",
                       v.major < 0 ? 9 : v.major);
  }
  if (v.stem.starts_with("libnvinfer") || v.stem.starts_with("libnvonnxparser")) {
    const int major = v.major < 0 ? 10 : v.major;
    return fmt::format(
        "TensorRT {0} (`pip install 'tensorrt=={0}.*'`, or the packages libnvinfer{0}, libnvinfer-plugin{0} and "
        "libnvonnxparsers{0})",
        major);
  }
  for (const OtherLibrary& o : kOther) {
    if (soname.starts_with(o.prefix)) return std::string(o.package);
  }
  return {};
}

}  // namespace sdx
