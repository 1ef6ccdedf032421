"""ModelCompiler: a model with what this engine's passes made of it, as ONNX Runtime's class of that name writes models."""

from __future__ import annotations

import copy
import enum
import os
import shutil
import tempfile
from typing import Any, Callable

from ._enums import GraphOptimizationLevel
from ._errors import Fail, InvalidArgument
from ._files import write_whole
from ._options import SessionOptions
from ._sardonyx import with_places


class OrtCompileApiFlags(enum.IntFlag):
    NONE = 0
    ERROR_IF_NO_NODES_COMPILED = 1
    ERROR_IF_OUTPUT_FILE_EXISTS = 2


class OrtExternalInitializerInfo:
    """Where an initializer's data are: a file, an offset and a size in bytes."""

    def __init__(self, filepath: str | os.PathLike[str], file_offset: int, byte_size: int) -> None:
        self.filepath = os.fspath(filepath)
        self.file_offset = int(file_offset)
        self.byte_size = int(byte_size)


class ModelCompiler:
    """Writes the model as a session with these options sees it. No provider here keeps compiled parts in models (EPContext nodes)."""

    def __init__(
        self,
        sess_options: SessionOptions,
        input_model_path_or_bytes: str | os.PathLike[str] | bytes,
        embed_compiled_data_into_model: bool = False,
        external_initializers_file_path: str | os.PathLike[str] | None = None,
        external_initializers_size_threshold: int = 1024,
        flags: int = OrtCompileApiFlags.NONE,
        graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_DISABLE_ALL,
        get_initializer_location_func: Callable[..., OrtExternalInitializerInfo | None] | None = None,
    ) -> None:
        model = input_model_path_or_bytes
        if not isinstance(model, (str, os.PathLike, bytes)):
            raise TypeError(f"Unable to load from type '{type(model)}'")
        if not model:
            raise InvalidArgument(f"Input model {'bytes array' if isinstance(model, bytes) else 'path'} is empty")
        if external_initializers_file_path and not isinstance(external_initializers_file_path, (str, os.PathLike)):
            raise TypeError(f"Output external initializer filepath is of unexpected type '{type(external_initializers_file_path)}'")
        if external_initializers_file_path and get_initializer_location_func:
            raise InvalidArgument("Cannot initialize ModelCompiler with both `external_initializers_file_path` and `get_initializer_location_func`")
        self._options = copy.copy(sess_options)
        self._options.graph_optimization_level = graph_optimization_level
        self._model = model if isinstance(model, bytes) else os.fspath(model)
        self._data_file = os.fspath(external_initializers_file_path) if external_initializers_file_path else ""
        self._least = external_initializers_size_threshold
        self._flags = OrtCompileApiFlags(int(flags))
        self._location = get_initializer_location_func

    def set_ep_context_data_write_func(self, write_func: Callable[..., None]) -> None:
        """For compiled parts of a model; there are none here."""

    def clear_ep_context_data_write_func(self) -> None:
        """See set_ep_context_data_write_func."""

    def compile_to_file(self, output_model_path: str | os.PathLike[str] | None = None) -> None:
        """Without a path, beside the input with "_ctx" in its name."""
        if output_model_path is None or output_model_path == "":
            if isinstance(self._model, bytes):
                raise InvalidArgument("a model of bytes needs the path of the output")
            output_model_path = os.path.splitext(self._model)[0] + "_ctx.onnx"
        if not isinstance(output_model_path, (str, os.PathLike)):
            raise TypeError(f"Output model's filepath is of unexpected type '{type(output_model_path)}'")
        path = os.fspath(output_model_path)
        if OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS in self._flags and os.path.exists(path):
            raise Fail(f"the output '{path}' exists already (ERROR_IF_OUTPUT_FILE_EXISTS)")
        data = self._compiled(os.path.dirname(os.path.abspath(path)))
        write_whole(path, lambda file: file.write(data))

    def compile_to_bytes(self) -> bytes:
        return self._compiled(os.getcwd())

    def compile_to_stream(self, write_function: Callable[[bytes], Any]) -> None:
        """In pieces of at most 64 KB. What the function raises comes as the cause of a Fail."""
        data = self._compiled(os.getcwd())
        for start in range(0, len(data), 65536):
            try:
                write_function(data[start : start + 65536])
            except Exception as e:
                raise Fail(f"the function that takes the compiled model failed: {e}") from e

    def _compiled(self, folder: str) -> bytes:
        from ._session import InferenceSession

        if OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED in self._flags:
            raise Fail("Unable to compile any nodes: no provider here keeps compiled parts in models (ERROR_IF_NO_NODES_COMPILED)")
        with tempfile.TemporaryDirectory() as place:
            made = os.path.join(place, "model.onnx")
            options = copy.copy(self._options)
            options.optimized_model_filepath = made
            data_name = os.path.basename(self._data_file)
            options._config = {
                **options._config,
                "session.optimized_model_external_initializers_file_name": data_name,
                "session.optimized_model_external_initializers_min_size_in_bytes": str(self._least),
            }
            InferenceSession(self._model, options)
            if self._data_file:
                data = os.path.join(place, data_name)
                if os.path.exists(data):
                    with open(data, "rb") as file:
                        write_whole(os.path.join(folder, self._data_file), lambda out: shutil.copyfileobj(file, out))
            elif os.path.exists(made + ".data"):
                raise Fail("the model's constants are more than a file of a model holds: name a file for them (external_initializers_file_path)")
            if self._location is not None:
                return with_places(made, self._place)
            with open(made, "rb") as file:
                return file.read()

    def _place(self, name: str, array: Any) -> tuple[str, int] | None:
        from ._values import OrtValue

        info = None if self._location is None else self._location(name, OrtValue(array), None)
        if info is None:
            return None
        if info.byte_size != array.nbytes:
            raise InvalidArgument(f"initializer '{name}' has {array.nbytes} bytes, not the {info.byte_size} that get_initializer_location_func returned")
        return info.filepath, info.file_offset
