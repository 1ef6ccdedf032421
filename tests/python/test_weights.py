"""Weights and extents that options give in place of the model's, and files with the weights of models that are written."""

import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

import sardonyx as ort
from sardonyx._compiler import ModelCompiler, OrtExternalInitializerInfo

W = np.arange(4, dtype=np.float32)
X = np.ones(4, np.float32)


def added(weight=W, external=None, shape=(4,)):
    """y = x + w; external: the name of the file that has w from byte 8 on."""
    w = numpy_helper.from_array(weight, "w")
    if external is not None:
        set_external_data(w, external, offset=8, length=len(w.raw_data))
        w.ClearField("raw_data")
        w.data_location = TensorProto.EXTERNAL
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def opened(model, options):
    return ort.InferenceSession(model if isinstance(model, str) else model.SerializeToString(), options)


def result(model, options, x=X):
    return opened(model, options).run(None, {"x": x})[0].tolist()


def test_an_initializer_is_replaced(tmp_path):
    options, given = ort.SessionOptions(), W * 10
    options.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(given))
    options.add_initializer("unknown", ort.OrtValue.ortvalue_from_numpy(W))
    session = opened(added(), options)
    given[:] = 0  # the session has a copy
    assert session.run(None, {"x": X})[0].tolist() == [1, 11, 21, 31]
    onnx.save(added(), tmp_path / "m.onnx")
    assert result(str(tmp_path / "m.onnx"), ort.SessionOptions()) == [1, 2, 3, 4]
    options.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(W[:2]))
    with pytest.raises(ort.InvalidArgument, match=r"initializer 'w' of the model is float32\[4\]; its replacement is float32\[2\]"):
        opened(added(), options)


def test_weights_of_other_files_come_from_memory(tmp_path):
    model = added(external="w.bin")
    onnx.save(model, tmp_path / "m.onnx")  # without w.bin
    for source in (model, str(tmp_path / "m.onnx")):
        options = ort.SessionOptions()
        options.add_external_initializers(["w"], [ort.OrtValue.ortvalue_from_numpy(W * 2)])
        assert result(source, options) == [1, 3, 5, 7]
        options = ort.SessionOptions()
        content = bytes(8) + (W * 3).tobytes()
        options.add_external_initializers_from_files_in_memory(["w.bin"], [content], [len(content)])
        assert result(source, options) == [1, 4, 7, 10]
        options.add_external_initializers_from_files_in_memory(["w.bin"], [content], [20])
        with pytest.raises(ort.InvalidGraph, match="16 bytes at offset 8 of 'w.bin' are needed, but the file has 20 bytes"):
            opened(source, options)


def test_only_weights_of_other_files_are_external():
    options = ort.SessionOptions()
    options.add_external_initializers(["w"], [ort.OrtValue.ortvalue_from_numpy(W)])
    with pytest.raises(ort.InvalidArgument, match="initializer 'w' has its data in the model, not in another file"):
        opened(added(), options)
    options = ort.SessionOptions()
    options.add_external_initializers(["v"], [ort.OrtValue.ortvalue_from_numpy(W)])
    with pytest.raises(ort.InvalidArgument, match="the model has no initializer 'v' with data in another file"):
        opened(added(external="w.bin"), options)


def test_extents_are_fixed_by_denotation(tmp_path):
    model = added(shape=("n", None, 4))
    dims = model.graph.input[0].type.tensor_type.shape.dim
    dims[0].denotation, dims[1].denotation, dims[2].denotation = "DATA_BATCH", "ROWS", "DATA_BATCH"
    onnx.save(model, tmp_path / "m.onnx")
    for source in (model, str(tmp_path / "m.onnx")):
        options = ort.SessionOptions()
        options.add_free_dimension_override_by_denotation("DATA_BATCH", 3)
        options.add_free_dimension_override_by_denotation("ROWS", 2)
        options.add_free_dimension_override_by_denotation("nowhere", 5)
        session = opened(source, options)
        assert session.get_inputs()[0].shape == [3, 2, 4]
        assert session.get_outputs()[0].shape[0] == 3


@pytest.mark.parametrize("least, inside", [(16, False), (17, True)])
def test_the_optimised_models_weights_lie_beside_it(tmp_path, least, inside):
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "o.onnx")
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "o.bin")
    options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", str(least))
    opened(added(), options)
    made = onnx.load(tmp_path / "o.onnx", load_external_data=False).graph.initializer[0]
    assert (made.data_location == TensorProto.DEFAULT) == inside
    assert result(str(tmp_path / "o.onnx"), ort.SessionOptions()) == [1, 2, 3, 4]
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "folder/o.bin")
    with pytest.raises(ort.InvalidArgument, match="'folder/o.bin' must be a name without a folder"):
        opened(added(), options)


def test_a_compiled_models_weights_lie_beside_it(tmp_path):
    target = tmp_path / "c.onnx"
    ModelCompiler(ort.SessionOptions(), added().SerializeToString(), False, "c.bin", 8).compile_to_file(target)
    assert (tmp_path / "c.bin").read_bytes() == W.tobytes()
    assert sorted(os.listdir(tmp_path)) == ["c.bin", "c.onnx"]
    assert result(str(target), ort.SessionOptions()) == [1, 2, 3, 4]


def test_a_function_places_a_compiled_models_weights(tmp_path):
    size = W.nbytes

    def place(name, value, _):
        assert name == "w" and value.numpy().tolist() == W.tolist()
        return OrtExternalInitializerInfo("w.bin", 8, size)

    def compiler():
        return ModelCompiler(ort.SessionOptions(), added().SerializeToString(), get_initializer_location_func=place)

    compiler().compile_to_file(tmp_path / "c.onnx")
    (tmp_path / "w.bin").write_bytes(bytes(8) + (W * 2).tobytes())
    assert result(str(tmp_path / "c.onnx"), ort.SessionOptions()) == [1, 3, 5, 7]
    size = 15
    with pytest.raises(ort.InvalidArgument, match="initializer 'w' has 16 bytes, not the 15"):
        compiler().compile_to_bytes()


def test_a_model_brings_options_and_notes(tmp_path):
    from sardonyx import _process

    model = added()
    helper.set_model_props(model, {"ort_config": '{"session_options": {"intra_op_num_threads": 3}}', "ep_compatibility_info.CPU": "all"})
    onnx.save(model, tmp_path / "m.onnx")
    for source in (model.SerializeToString(), str(tmp_path / "m.onnx")):
        session = ort.InferenceSession(source, read_config_from_model=True)
        assert session.get_session_options().intra_op_num_threads == 3
    assert _process.get_compatibility_info_from_model(str(tmp_path / "m.onnx"), "CPU") == "all"
    assert _process.get_compatibility_info_from_model_bytes(model.SerializeToString(), "CUDA") is None
    with pytest.raises(ort.InvalidProtobuf, match="the bytes hold no ONNX model"):
        _process.get_compatibility_info_from_model_bytes(b"\xff\xff", "CPU")
