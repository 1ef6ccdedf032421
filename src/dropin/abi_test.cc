// Places and layouts that programs were compiled with.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include "dropin/call.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {
namespace {

// The last functions of each version, which fix the places of all functions between them: as many as the version has.
struct VersionEnd {
  int version;
  unsigned count;
  Slot last;
};
constexpr VersionEnd kEnds[] = {
    {1, 102, Slot::ReleaseCustomOpDomain},
    {2, 119, Slot::ReleaseModelMetadata},
    {3, 125, Slot::AddFreeDimensionOverrideByName},
    {4, 127, Slot::ReleaseAvailableProviders},
    {5, 150, Slot::SetGlobalSpinControl},
    {6, 158, Slot::ReleaseArenaCfg},
    {7, 162, Slot::GetCurrentGpuDeviceId},
    {8, 170, Slot::CreateSessionFromArrayWithPrepackedWeightsContainer},
    {9, 192, Slot::GetSparseTensorIndices},
    {10, 204, Slot::SynchronizeBoundOutputs},
    {11, 210, Slot::SessionOptionsAppendExecutionProvider_MIGraphX},
    {12, 219, Slot::ReleaseKernelInfo},
    {13, 225, Slot::ReleaseCANNProviderOptions},
    {14, 239, Slot::GetSessionConfigEntry},
    {15, 255, Slot::GetBuildInfoString},
    {16, 266, Slot::KernelContext_GetResource},
    {17, 276, Slot::SessionOptionsAppendExecutionProvider_OpenVINO_V2},
    {18, 280, Slot::AddExternalInitializersFromFilesInMemory},
    {20, 285, Slot::SetEpDynamicOptions},
    {22, 318, Slot::GetEpApi},
    {23, 390, Slot::CreateExternalInitializerInfo},
    {24, 415, Slot::GetTensorElementTypeAndShapeDataReference},
    {25, 419, Slot::SetPerSessionThreadPoolCallbacks},
    {27, 422, Slot::SessionReleaseCapturedGraph},
    {28, 424, Slot::KernelContext_GetSyncStream},
    {29, 425, Slot::SessionOptionsSetWeightlessSourceModelBuffer},
    {30, 426, Slot::KernelContext_GetPreallocatedOutput},
};

TEST(DropinAbi, SlotsEndWhereVersionsEnd) {
  for (const VersionEnd& end : kEnds) {
    EXPECT_EQ(static_cast<unsigned>(end.last) + 1, end.count) << end.version;
  }
  EXPECT_EQ(kSlotCount, 428U);
}

// FNV-1a over the names that are published, a line each, in the order of the published header.
TEST(DropinAbi, EachNameIsAtItsPlace) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (unsigned place = 0; place < 426; ++place) {
    for (const char c : std::string(kSlots[place].name) + "\n") hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  EXPECT_EQ(hash, 0x28e4c673f5a97);
  EXPECT_EQ(sizeof(Table), kSlotCount * sizeof(void*));
}

TEST(DropinAbi, NamesAreThoseOfTheEnumeration) {
  EXPECT_STREQ(kSlots[static_cast<unsigned>(Slot::Run)].name, "Run");
  EXPECT_STREQ(kSlots[9].name, "Run");
  EXPECT_STREQ(kSlots[93].name, "ReleaseStatus");
  EXPECT_STREQ(kSlots[378].name, "GetTensorData");
  EXPECT_EQ(kSlots[93].returns, Returns::void_);
  EXPECT_EQ(kSlots[378].returns, Returns::status_);
  EXPECT_EQ(kSlots[390].returns, Returns::value_);
  std::set<std::string> names;
  for (const SlotInfo& slot : kSlots) names.insert(slot.name);
  EXPECT_EQ(names.size(), kSlotCount);
}

TEST(DropinAbi, LayoutsOfStructures) {
  EXPECT_EQ(sizeof(OrtApiBase), 2 * sizeof(void*));
  EXPECT_EQ(offsetof(OrtAllocator, Alloc), 8U);
  EXPECT_EQ(offsetof(OrtAllocator, Free), 16U);
  EXPECT_EQ(offsetof(OrtAllocator, Info), 24U);
  EXPECT_EQ(offsetof(OrtAllocator, Reserve), 32U);
  EXPECT_EQ(offsetof(OrtAllocator, GetStats), 40U);
  EXPECT_EQ(offsetof(OrtAllocator, AllocOnStream), 48U);
  EXPECT_EQ(offsetof(OrtAllocator, Shrink), 56U);
  EXPECT_EQ(offsetof(OrtCustomOp, KernelDestroy), 72U);
  EXPECT_EQ(offsetof(OrtCustomOp, GetInputMemoryType), 96U);
  EXPECT_EQ(offsetof(OrtCustomOp, CreateKernelV2), 136U);
  EXPECT_EQ(offsetof(OrtCustomOp, ReleaseAliasMap), 200U);
  EXPECT_EQ(sizeof(OrtCustomOp), 208U);
  EXPECT_EQ(offsetof(OrtEnvCreationOptions, log_id), 8U);
  EXPECT_EQ(sizeof(OrtEnvCreationOptions), 48U);
}

TEST(DropinAbi, OneTableForAllVersions) {
  const OrtApi* const first = api_base()->GetApi(1);
  ASSERT_NE(first, nullptr);
  for (std::uint32_t version = 1; version <= kNewestApi; ++version) EXPECT_EQ(api_base()->GetApi(version), first);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(api_base()->GetApi(0), nullptr);
  EXPECT_EQ(api_base()->GetApi(32), nullptr);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("only API versions [1, 31] are supported"), std::string::npos);
  EXPECT_EQ(std::string(api_base()->GetVersionString()).substr(0, 2), "1.");
}

TEST(DropinAbi, NoFunctionIsMissing) {
  for (const Table::Function function : table().functions) EXPECT_NE(function, nullptr);
}

// All that docs/drop-in.md names as not implemented, and nothing else.
bool documented_as_missing(std::string_view name) {
  static const std::set<std::string_view> kOthers = {
      "GetTrainingApi",
      "UpdateTensorRTProviderOptionsWithValue",
      "GetTensorRTProviderOptionsByName",
      "UpdateCUDAProviderOptionsWithValue",
      "GetCUDAProviderOptionsByName",
      "OpAttr_GetTensorAttributeAsOrtValue",
      "SetPerSessionThreadPoolCallbacks",
      "Unnamed426",
      "Unnamed427",
  };
  return kOthers.contains(name) || name.starts_with("Graph_") || name.starts_with("Node_") || name.starts_with("ValueInfo_");
}

TEST(DropinAbi, WhatIsNotThereSaysSo) {
  const Caller api(sdx::dropin::api());
  for (unsigned place = 0; place < kSlotCount; ++place) {
    const SlotInfo& slot = kSlots[place];
    EXPECT_EQ(table().functions[place] == missing_table().functions[place], documented_as_missing(slot.name)) << slot.name;
    if (!documented_as_missing(slot.name) || slot.returns != Returns::status_) continue;
    OrtStatus* const status = api.call(static_cast<Slot>(place));
    ASSERT_NE(status, nullptr) << slot.name;
    EXPECT_EQ(api.call<OrtErrorCode>(Slot::GetErrorCode, const_cast<const OrtStatus*>(status)), ORT_NOT_IMPLEMENTED);
    const char* const message = api.call<const char*>(Slot::GetErrorMessage, const_cast<const OrtStatus*>(status));
    EXPECT_NE(std::strstr(message, slot.name), nullptr) << message;
    api.call<void>(Slot::ReleaseStatus, status);
  }
  EXPECT_EQ(api.call<const void*>(Slot::GetTrainingApi, std::uint32_t{20}), nullptr);
}

}  // namespace
}  // namespace sdx::dropin
