"""One library, one number of threads, in a process of its own: worker.py LIBRARY THREADS [CASE]... Prints JSON: microseconds by case, or null.

Times are the least of many calls, each of which ends when the numbers are there. JAX runs compiled (jit), as its users do. With the
environment variable BENCH_BY=cpu they are of the processor where that is less than the wall clock's, as on a machine with other work.
"""

import json
import os
import sys
import time

LIBRARY, THREADS = sys.argv[1], int(sys.argv[2])
for variable in ("SDX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = str(THREADS)
os.environ["XLA_FLAGS"] = "" if THREADS > 1 else "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])

import numpy as np  # noqa: E402

SECONDS = 0.2  # for each case


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def inputs_of(case: str) -> list[np.ndarray]:
    kind, _, size = case.partition(" ")
    n = int(size or 0)
    million = 1 << 20
    if kind == "matmul":
        return [numbers(n, n), numbers(n, n, seed=1)]
    if kind in ("add", "build"):
        return [numbers(n), numbers(n, seed=1)]
    if kind == "update":
        return [numbers(n), numbers(n, seed=1)]
    if kind == "chain":
        return [numbers(n), numbers(n, seed=1)]
    if kind in ("exp", "sum", "argmax", "cumsum"):
        return [numbers(n)]
    if kind in ("sum0", "sum1", "mean1", "max0", "softmax", "norm"):
        return [numbers(million // n, n)]
    if kind == "conv":
        return [numbers(8, 56, 56, n), numbers(n, 3, 3, n, seed=1)]
    if kind in ("sort", "argsort"):
        return [numbers(n)]
    if kind == "sortrows":
        return [numbers(million // n, n)]
    if kind == "gather":
        return [numbers(50_000, n), np.random.default_rng(2).integers(0, 50_000, 8192).astype(np.int32)]
    if kind == "transpose":
        return [numbers(n, n)]
    if kind == "add_i32":
        return [np.arange(n, dtype=np.int32), np.arange(n, dtype=np.int32)]
    if kind == "chain_f64":
        return [numbers(n).astype(np.float64), numbers(n, seed=1).astype(np.float64)]
    raise SystemExit(f"no case {case}; known: {', '.join(CASES)}")


CASES = (["build 10", "add 10", "add 1000"] + [f"matmul {n}" for n in (64, 128, 256, 512, 1024, 2048)] +
         ["add 1048576", "exp 1048576", "chain 1048576", "chain_f64 1048576", "add_i32 1048576", "update 10000000", "sum 1048576",
          "sum0 1024", "sum1 1024", "max0 1024", "mean1 64", "argmax 1048576", "cumsum 1048576", "softmax 64", "softmax 1024", "norm 768",
          "transpose 1024", "conv 32", "conv 128", "sort 1048576", "argsort 1048576", "sortrows 1024", "gather 128"])  # fmt: skip


def function_of(case: str, xp, mlx: bool):
    """The case over a module with NumPy's names, or with MLX's."""
    kind = case.partition(" ")[0]
    if kind in ("add", "add_i32", "build"):
        return lambda a, b: a + b
    if kind in ("chain", "chain_f64"):
        return lambda a, b: xp.maximum(xp.sqrt(a * a + b * b) * 0.5 - a, 0.0) + b * 2.0
    if kind == "update":
        return lambda p, g: p - g * 0.01
    if kind == "matmul":
        return lambda a, b: a @ b
    if kind in ("exp", "sum", "cumsum", "argmax", "sort", "argsort"):
        return getattr(xp, kind)
    if kind in ("sum0", "max0", "sum1", "mean1"):
        return lambda a: getattr(xp, kind[:-1])(a, axis=int(kind[-1]))
    if kind == "sortrows":
        return lambda a: xp.sort(a, axis=-1)
    if kind == "gather":
        return lambda table, at: xp.take(table, at, axis=0)
    if kind == "transpose":
        return lambda a: xp.contiguous(a.T) if mlx else a.T.copy()
    if kind == "softmax" and mlx:
        return lambda a: xp.softmax(a, axis=-1)
    if kind == "softmax":

        def softmax(a):
            e = xp.exp(a - a.max(axis=-1, keepdims=True))
            return e / e.sum(axis=-1, keepdims=True)

        return softmax
    if kind == "norm":

        def norm(a):
            centred = a - xp.mean(a, axis=-1, keepdims=True)
            return centred / xp.sqrt(xp.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)

        return norm
    if kind == "conv" and mlx:
        return lambda x, w: xp.conv2d(x, w, padding=1)
    return None


def least(call) -> float:
    used, start = time.process_time(), time.perf_counter()
    call()
    first = min(time.perf_counter() - start, time.process_time() - used)
    if first > 3:  # what is so slow is hardly what was compiled
        return first * 1e6
    by_cpu = os.environ.get("BENCH_BY") == "cpu"
    best, end = float("inf"), time.perf_counter() + SECONDS
    while True:
        used, start = time.process_time() if by_cpu else 0, time.perf_counter()
        call()
        now = time.perf_counter()
        best = min(best, now - start, time.process_time() - used if by_cpu else now - start)
        if now > end:
            return best * 1e6


def with_numpy(case: str, inputs: list):
    function = function_of(case, np, False)
    return function and (lambda: function(*inputs))


def with_jax(case: str, inputs: list):
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    arrays = [jnp.asarray(x) for x in inputs]
    if case.startswith("conv "):
        dims = ("NHWC", "OHWI", "NHWC")
        function = lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=dims)  # noqa: E731
    else:
        function = function_of(case, jnp, False)
    if case.startswith("build"):
        return lambda: function(*arrays)
    if case.startswith("update"):
        compiled, held = jax.jit(function, donate_argnums=0), arrays[:]

        def update():
            held[0] = compiled(*held).block_until_ready()

        return update
    compiled = jax.jit(function)
    return lambda: compiled(*arrays).block_until_ready()


def with_mx(case: str, inputs: list, mx):
    stream = {"stream": mx.cpu} if case.startswith("chain_f64") else {}
    arrays = [mx.array(x, dtype=mx.float64) if x.dtype == np.float64 else mx.array(x) for x in inputs]
    mx.eval(arrays)
    function = function_of(case, mx, True)
    if case.startswith("build"):
        return lambda: function(*arrays)
    if case.startswith("update"):
        held = arrays[:]

        def update():
            held[0] = function(*held)
            mx.eval(held[0])

        return update
    if stream:
        mx.set_default_device(mx.cpu)
    return lambda: mx.eval(function(*arrays))


def main() -> None:
    out = {}
    for case in sys.argv[3:] or CASES:
        inputs = inputs_of(case)
        try:
            if LIBRARY == "numpy":
                call = with_numpy(case, inputs)
            elif LIBRARY == "jax":
                call = with_jax(case, inputs)
            elif LIBRARY == "mlx":
                import mlx.core as mx

                call = with_mx(case, inputs, mx)
            else:
                import sardonyx.array as mx

                call = with_mx(case, inputs, mx)
            out[case] = least(call) if call else None
        except Exception as error:  # noqa: BLE001: what a library lacks is no time
            print(f"{LIBRARY}: {case}: {type(error).__name__}: {error}", file=sys.stderr)
            out[case] = None
    print(json.dumps(out))


main()
