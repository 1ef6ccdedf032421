"""Models as callers have them: files, or objects of the package `onnx`, which is imported only where one comes or is wanted."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, Union

ModelInput = Union[str, "os.PathLike[str]", Any]  # the last: onnx.ModelProto

EXTERNAL_TENSORS = 1 << 30  # bytes; messages of protocol buffers end at 2 GiB


@contextmanager
def as_file(model: ModelInput) -> Iterator[str]:
    """The model's path; a ModelProto is written to a temporary file."""
    if not hasattr(model, "SerializeToString"):
        yield os.fspath(model)
        return
    proto: Any = model
    with tempfile.TemporaryDirectory(prefix="sardonyx.quantization.") as folder:
        path = os.path.join(folder, "model.onnx")
        if proto.ByteSize() < EXTERNAL_TENSORS:
            Path(path).write_bytes(proto.SerializeToString())
        else:
            import copy

            import onnx

            onnx.save_model(copy.deepcopy(proto), path, save_as_external_data=True, location="model.onnx.data")
        yield path


@contextmanager
def new_file() -> Iterator[str]:
    """A name for a model that exists for a while."""
    with tempfile.TemporaryDirectory(prefix="sardonyx.quantization.") as folder:
        yield os.path.join(folder, "quantized.onnx")


def load(path: str) -> Any:
    """The ModelProto in a file, external data inside."""
    import onnx

    return onnx.load_model(path)
