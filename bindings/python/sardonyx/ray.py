"""Models in Ray: over whole data sets, and behind Ray Serve.

    import ray
    from sardonyx.ray import Predictor, deployment
    rows = ray.data.read_parquet("rows.parquet")
    rows.map_batches(Predictor, fn_constructor_kwargs={"model": "model.onnx"}, batch_size=64, num_cpus=2, concurrency=4).write_parquet("scored/")

    from ray import serve
    serve.run(deployment("model.onnx", num_replicas=2, max_batch_size=32))

Predictor needs no Ray: anything that hands over columns may call it. docs/serve/scale.md says what to choose when.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Mapping, Sequence

import numpy as np

from ._errors import InvalidArgument
from ._options import SessionOptions
from ._session import InferenceSession
from ._types import numpy_of

if TYPE_CHECKING:
    from ._providers import Providers

Batch = Mapping[str, Any]


def _assigned_cpus() -> int:
    """Of Ray's worker that this runs in; 0: all, where this is none."""
    try:
        import ray
    except ImportError:
        return 0
    if not ray.is_initialized():
        return 0
    return max(1, int(ray.get_runtime_context().get_assigned_resources().get("CPU", 1)))


def _session_options(settings: Mapping[str, Any] | None) -> SessionOptions:
    options = SessionOptions()
    options.intra_op_num_threads = _assigned_cpus()  # several workers on one machine share its cores out
    for name, value in (settings or {}).items():
        setattr(options, name, value)
    return options


class Predictor:
    """A model as a callable class for `ray.data.Dataset.map_batches`: columns in, the same columns and the model's outputs out.

    inputs: which column is which input, {"input": "column"}; None: columns called as the inputs are, or the only column for the only
    input. outputs: the outputs that are wanted, a list, or {"output": "column"}; None: all. keep: the columns that go on with the
    results; True: all, False: none. session_options: attributes of SessionOptions; as many threads as Ray gives the worker cores,
    unless they say otherwise. All must be values that can be pickled; the model is opened once for each worker.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        inputs: Mapping[str, str] | None = None,
        outputs: Sequence[str] | Mapping[str, str] | None = None,
        keep: bool | Sequence[str] = True,
        providers: Providers | None = None,
        session_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.session = InferenceSession(os.fspath(model), _session_options(session_options), providers)
        self._specs = self.session.get_inputs()
        known = [spec.name for spec in self._specs]
        if inputs is not None and set(inputs) != set(known):
            raise InvalidArgument(f"inputs must say where all of the model's inputs come from: {', '.join(known)}; received {', '.join(inputs)}")
        self._inputs = dict(inputs) if inputs is not None else None
        names = [out.name for out in self.session.get_outputs()]
        self._outputs = dict(outputs) if isinstance(outputs, Mapping) else {name: name for name in (names if outputs is None else outputs)}
        if missing := [name for name in self._outputs if name not in names]:
            raise InvalidArgument(f"the model has no output '{missing[0]}'; it has {', '.join(names)}")
        self._keep = keep
        extents = {spec.shape[0] for spec in self._specs if spec.shape and isinstance(spec.shape[0], int)}
        self._fixed = extents.pop() if len(extents) == 1 else 0  # rows that a run takes, where the model insists on a number

    def _column(self, batch: Batch, name: str) -> Any:
        if self._inputs is not None:
            name = self._inputs[name]
        elif name not in batch and len(self._specs) == 1 and len(batch) == 1:
            return next(iter(batch.values()))
        if name not in batch:
            raise InvalidArgument(f"there is no column '{name}'; columns: {', '.join(batch)}")
        return batch[name]

    def _feed(self, batch: Batch) -> dict[str, np.ndarray]:
        feed = {}
        for spec in self._specs:
            column = np.asarray(self._column(batch, spec.name))
            wanted = numpy_of(spec.type)
            if column.dtype == object and wanted.kind not in "OUS":
                column = np.stack([np.asarray(row) for row in column]) if len(column) else np.empty(0, wanted)
            if column.dtype != wanted and np.can_cast(column.dtype, wanted, "same_kind"):
                column = column.astype(wanted)
            if spec.shape is not None and column.ndim == 1 and len(spec.shape) == 2 and spec.shape[1] in (1, None):
                column = column[:, None]  # one number in each row
            feed[spec.name] = column
        return feed

    def _run(self, feed: dict[str, np.ndarray], rows: int) -> list[np.ndarray]:
        names = list(self._outputs)
        if not self._fixed or self._fixed == rows:
            return self.session.run(names, feed)
        parts = []
        for begin in range(0, rows, self._fixed):
            part = {name: column[begin : begin + self._fixed] for name, column in feed.items()}
            short = self._fixed - min(self._fixed, rows - begin)
            if short:  # the last rows once more, whose results go
                part = {name: np.concatenate([column, np.repeat(column[-1:], short, axis=0)]) for name, column in part.items()}
            parts.append([out[: self._fixed - short] for out in self.session.run(names, part)])
        return [np.concatenate(column) for column in zip(*parts)]

    def predict(self, batch: Batch) -> dict[str, np.ndarray]:
        """The outputs alone, by their columns' names. Each must have as many rows as the batch."""
        feed = self._feed(batch)
        rows = len(next(iter(feed.values())))
        if rows == 0:
            return {column: np.empty(0, np.float32) for column in self._outputs.values()}
        results = dict(zip(self._outputs.values(), self._run(feed, rows)))
        for name, values in results.items():
            if np.ndim(values) == 0 or len(values) != rows:
                raise InvalidArgument(f"output '{name}' has the shape {list(np.shape(values))} for {rows} rows: it has none for each row")
        return results

    def __call__(self, batch: Batch) -> dict[str, Any]:
        results = self.predict(batch)
        if self._keep is False:
            return results
        kept = batch if self._keep is True else {name: batch[name] for name in self._keep}
        return {**kept, **results}


def deployment(
    model: str | os.PathLike[str],
    *,
    max_batch_size: int = 16,
    batch_wait_timeout_s: float = 0.005,
    providers: Providers | None = None,
    session_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """An application for `ray.serve.run`. options: as for ray.serve.deployment (num_replicas, ray_actor_options, autoscaling_config …).

    POST {"inputs": {"name": rows}} answers {"outputs": {"name": rows}}; a handle's `predict.remote({"name": row})` takes one row and gives
    one. Rows that come together run together, at most max_batch_size of them.
    """
    from ray import serve

    path = os.fspath(model)

    @serve.deployment(**{"name": "sardonyx", **options})
    class Served:
        def __init__(self) -> None:
            self._predictor = Predictor(path, keep=False, providers=providers, session_options=session_options)

        @serve.batch(max_batch_size=max_batch_size, batch_wait_timeout_s=batch_wait_timeout_s)
        async def predict(self, rows: list[Batch]) -> list[dict[str, Any]]:
            results = self._predictor.predict({name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]})
            return [{name: values[i] for name, values in results.items()} for i in range(len(rows))]

        async def __call__(self, request: Any) -> Any:
            from starlette.responses import JSONResponse

            try:
                inputs = (await request.json())["inputs"]
                results = self._predictor.predict({name: np.asarray(rows) for name, rows in inputs.items()})
            except (ValueError, KeyError, TypeError, AttributeError, InvalidArgument) as e:
                return JSONResponse({"error": str(e) or type(e).__name__}, status_code=400)
            return JSONResponse({"outputs": {name: values.tolist() for name, values in results.items()}})

    made: Any = Served
    return made.bind()
