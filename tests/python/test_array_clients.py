"""Published packages that compute with any array of the standard: they compute with ours."""

import os

import numpy as np
import pytest
import sardonyx.array as mx

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before SciPy is imported
RANDOM = np.random.default_rng(0)


def test_array_api_compat():
    compat = pytest.importorskip("array_api_compat")
    x = mx.ones((2, 3))
    assert compat.is_array_api_obj(x) and compat.array_namespace(x) is mx and compat.size(x) == 6


def test_einops():
    einops = pytest.importorskip("einops")
    standard = pytest.importorskip("einops.array_api")
    x = RANDOM.normal(size=(2, 6, 4)).astype(np.float32)
    for pattern, sizes in [("b (h w) c -> b c h w", {"h": 2}), ("b l c -> (b l) c", {})]:
        wanted = einops.rearrange(x, pattern, **sizes)
        np.testing.assert_array_equal(np.asarray(standard.rearrange(mx.asarray(x), pattern, **sizes)), wanted)
    np.testing.assert_allclose(np.asarray(standard.reduce(mx.asarray(x), "b l c -> b c", "mean")), x.mean(1), rtol=1e-5)


def test_scipy():
    stats = pytest.importorskip("scipy.stats")
    special = pytest.importorskip("scipy.special")
    x = RANDOM.normal(size=(50, 3)).astype(np.float32)
    try:
        ours = special.logsumexp(mx.asarray(x), axis=0)
    except TypeError as e:
        pytest.skip(f"this SciPy does not take other arrays: {e}")
    assert isinstance(ours, mx.array)
    np.testing.assert_allclose(np.asarray(ours), special.logsumexp(x, axis=0), rtol=1e-5)
    zscores = stats.zscore(mx.asarray(x), axis=0)
    assert isinstance(zscores, mx.array)
    np.testing.assert_allclose(np.asarray(zscores), stats.zscore(x, axis=0), rtol=1e-4, atol=1e-5)


def test_scikit_learn():
    sklearn = pytest.importorskip("sklearn")
    pytest.importorskip("array_api_compat")
    from sklearn.metrics import mean_squared_error
    from sklearn.preprocessing import MinMaxScaler

    x = RANDOM.normal(size=(40, 3)).astype(np.float32)
    with sklearn.config_context(array_api_dispatch=True):
        ours = MinMaxScaler().fit_transform(mx.asarray(x))
        error = mean_squared_error(mx.asarray(x[:, 0]), mx.asarray(x[:, 1]))
    assert isinstance(ours, mx.array)
    np.testing.assert_allclose(np.asarray(ours), MinMaxScaler().fit_transform(x), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(float(error), mean_squared_error(x[:, 0], x[:, 1]), rtol=1e-5)
