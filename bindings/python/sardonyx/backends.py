"""One model at a time, by the calls that programs with several backends share.

    from sardonyx.backends import AccelerationBackend, ONNXRuntimeManager
    manager = ONNXRuntimeManager()
    manager.load_model(model_path="SmolLM2-135M-Instruct.Q4_1.gguf", acceleration=AccelerationBackend.AUTO)
    answer = manager.generate([{"role": "user", "content": "Hello"}], {"max_tokens": 64})
    print(answer["content"], manager.get_state()["providers"])
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator, Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any

from ._errors import InvalidArgument, NotImplemented
from ._options import SessionOptions
from ._providers import get_available_providers
from .text import LanguageModel, TextEmbedder

if TYPE_CHECKING:
    import numpy as np

__all__ = ["AccelerationBackend", "ONNXRuntimeManager"]


class AccelerationBackend(str, enum.Enum):
    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
    TENSORRT = "tensorrt"
    ROCM = "rocm"
    DIRECTML = "directml"
    NPU = "npu"
    METAL = "metal"
    VULKAN = "vulkan"


# Execution providers that compute there, best first.
_PROVIDERS = {
    AccelerationBackend.CPU: ["CPUExecutionProvider"],
    AccelerationBackend.CUDA: ["CUDAExecutionProvider"],
    AccelerationBackend.TENSORRT: ["TensorrtExecutionProvider"],
    AccelerationBackend.ROCM: ["MIGraphXExecutionProvider", "ROCMExecutionProvider"],
    AccelerationBackend.DIRECTML: ["DmlExecutionProvider"],
    AccelerationBackend.NPU: ["QNNExecutionProvider", "VitisAIExecutionProvider"],
    AccelerationBackend.METAL: ["CoreMLExecutionProvider"],
    AccelerationBackend.VULKAN: ["VulkanExecutionProvider"],
}
_CONFIG = frozenset({"threads", "max_context", "embedding"})


def _chosen(acceleration: AccelerationBackend | str) -> tuple[AccelerationBackend, list[str] | None]:
    try:
        wanted = AccelerationBackend(acceleration.lower() if isinstance(acceleration, str) else acceleration)
    except ValueError:
        names = ", ".join(b.value for b in AccelerationBackend)
        raise InvalidArgument(f"there is no acceleration '{acceleration}'; there are {names}") from None
    if wanted is AccelerationBackend.AUTO:
        return wanted, None
    available = get_available_providers()
    here = [p for p in _PROVIDERS[wanted] if p in available]
    if not here:
        raise NotImplemented(
            f"this machine cannot run models on '{wanted.value}': {' and '.join(_PROVIDERS[wanted])} "
            f"is not available; available: {', '.join(available)}"
        )
    return wanted, here


class ONNXRuntimeManager:
    """Holds a language model, or an embedding model (config {"embedding": True}). Any number of threads may use one."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._clear()

    def _clear(self) -> None:
        self._path: str | None = None
        self._acceleration: AccelerationBackend | None = None
        self._model: LanguageModel | None = None
        self._embedder: TextEmbedder | None = None

    def load_model(
        self,
        model_path: str | os.PathLike[str],
        acceleration: AccelerationBackend | str = AccelerationBackend.AUTO,
        config: Mapping[str, Any] | None = None,
        tokenizer_path: str | os.PathLike[str] | None = None,
    ) -> dict[str, Any]:
        """Instead of the model before; where it fails, that one stays. config: threads, max_context, embedding. Returns get_state().

        An acceleration that this machine does not have is an error; nothing runs elsewhere unless it is AUTO. tokenizer_path must be the
        model's own folder or file: models are read with the tokenizer beside them.
        """
        config = dict(config or {})
        unknown = sorted(set(config) - _CONFIG)
        if unknown:
            raise InvalidArgument(f"config has no '{unknown[0]}'; there are {', '.join(sorted(_CONFIG))}")
        path = os.path.abspath(os.fspath(model_path))
        if tokenizer_path is not None:
            own = path if os.path.isdir(path) else os.path.dirname(path)
            given = os.path.abspath(os.fspath(tokenizer_path))
            if given not in (path, own) and os.path.dirname(given) != own:
                raise NotImplemented(f"tokenizer_path '{given}' is not the model's own: put the tokenizer into '{own}'")
        wanted, providers = _chosen(acceleration)
        options = SessionOptions()
        options.intra_op_num_threads = int(config.get("threads", 0))
        model = embedder = None
        if config.get("embedding", False):
            embedder = TextEmbedder(path, providers=providers, sess_options=options)
        else:
            model = LanguageModel(path, max_context=int(config.get("max_context", 0)), providers=providers, sess_options=options)
        with self._lock:
            self._path, self._acceleration, self._model, self._embedder = path, wanted, model, embedder
            return self.get_state()

    def _language_model(self) -> LanguageModel:
        with self._lock:
            if self._model is None:
                raise InvalidArgument("no language model is loaded: call load_model() first")
            return self._model

    def generate(self, messages: str | Sequence[Mapping[str, Any]], settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """settings: those of sardonyx.text.LanguageModel.generate. Returns content, tokens, finish_reason, usage, timings."""
        answer = self._language_model().generate(messages, **dict(settings or {}))
        first = answer.choices[0]
        return {
            "content": first.text,
            "tokens": first.tokens,
            "finish_reason": first.finish_reason,
            "usage": {"prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.completion_tokens},
            "timings": {
                "first_token_ms": answer.first_token_ms,
                "prompt_tokens_per_s": answer.prompt_tokens_per_s,
                "tokens_per_s": answer.tokens_per_s,
            },
        }

    def generate_stream(
        self, messages: str | Sequence[Mapping[str, Any]], settings: Mapping[str, Any] | None = None
    ) -> Iterator[str]:
        """The texts of the answer as they come."""
        return self._language_model().stream(messages, **dict(settings or {}))

    def generate_embeddings(self, texts: str | Sequence[str]) -> np.ndarray:
        """float32[texts, dimensions]."""
        with self._lock:
            embedder = self._embedder
        if embedder is None:
            raise InvalidArgument('no embedding model is loaded: call load_model() with config {"embedding": True} first')
        return embedder.embed(texts)

    def get_state(self) -> dict[str, Any]:
        """loaded, model_path, kind ("language", "embedding"), acceleration as asked for; of a language model its info and what runs it."""
        with self._lock:
            model, loaded = self._model, self._path is not None
            kind = None if not loaded else "embedding" if self._embedder is not None else "language"
            state: dict[str, Any] = {"loaded": loaded, "model_path": self._path, "kind": kind}
            state["acceleration"] = None if self._acceleration is None else self._acceleration.value
            info = {} if model is None else dict(model.info)
            state["providers"] = info.pop("providers", None)
            state["info"] = info or None
            return state

    def unload_model(self) -> None:
        """What still computes finishes; then the memory is free. Without a model nothing happens."""
        with self._lock:
            self._clear()
