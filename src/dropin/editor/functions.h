#pragma once
// Tables beside the main one, by places of their functions.

#include "dropin/table.h"

namespace sdx::dropin {

template <class Place, std::size_t count>
struct Functions {
  Table::Function functions[count];

  template <class R, class... Args>
  void set(Place place, R (*function)(Args...) noexcept) {
    functions[static_cast<unsigned>(place)] = reinterpret_cast<Table::Function>(function);
  }
};

// What GetModelEditorApi gives.
enum class EditorFunction : unsigned {
  CreateTensorTypeInfo,
  CreateSparseTensorTypeInfo,
  CreateMapTypeInfo,
  CreateSequenceTypeInfo,
  CreateOptionalTypeInfo,
  CreateValueInfo,
  CreateNode,
  CreateGraph,
  SetGraphInputs,
  SetGraphOutputs,
  AddInitializerToGraph,
  AddNodeToGraph,
  CreateModel,
  AddGraphToModel,
  CreateSessionFromModel,
  CreateModelEditorSession,
  CreateModelEditorSessionFromArray,
  SessionGetOpsetForDomain,
  ApplyModelToModelEditorSession,
  FinalizeModelEditorSession,
  count
};
using EditorFunctions = Functions<EditorFunction, static_cast<std::size_t>(EditorFunction::count)>;

// What GetCompileApi gives.
enum class CompileFunction : unsigned {
  ReleaseModelCompilationOptions,
  CreateModelCompilationOptionsFromSessionOptions,
  SetInputModelPath,
  SetInputModelFromBuffer,
  SetOutputModelPath,
  SetOutputModelExternalInitializersFile,
  SetOutputModelBuffer,
  SetEpContextEmbedMode,
  CompileModel,
  SetFlags,
  SetEpContextBinaryInformation,
  SetGraphOptimizationLevel,
  SetOutputModelWriteFunc,
  SetOutputModelGetInitializerLocationFunc,
  SetInputModel,
  SetWeightlessEnabled,
  count
};
// Newer versions may have more functions: those are there, and say that they are not implemented.
using CompileFunctions = Functions<CompileFunction, static_cast<std::size_t>(CompileFunction::count) + 8>;

void fill_editor_parts(EditorFunctions& functions);
void fill_editor_sessions(EditorFunctions& functions);

}  // namespace sdx::dropin
