"""The session as programs written for ONNX Runtime use it."""

import gc
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import ONES, model
from onnx import TensorProto, helper

import sardonyx as ort


def test_what_a_model_declares(add):
    assert [(i.name, i.type, i.shape) for i in add.get_inputs()] == [("x", "tensor(float)", ["n", 3]), ("y", "tensor(float)", [3])]
    assert [(o.name, o.type, o.shape) for o in add.get_outputs()] == [("z", "tensor(float)", ["n", 3])]
    assert add.get_modelmeta().producer_name == "tests"
    assert add.get_providers() == ["CPUExecutionProvider"]
    assert add.get_provider_options() == {"CPUExecutionProvider": {}}
    assert add.get_overridable_initializers() == []


def test_outputs_are_as_the_file_declares_them():
    nodes = [helper.make_node("Reshape", ["x", "s"], ["a"]), helper.make_node("Neg", ["x"], ["b"]), helper.make_node("Neg", ["x"], ["c"])]
    session = ort.InferenceSession(
        model(nodes, [("x", 1, ["n", 2]), ("s", 7, [None])], [("a", 1, [None, 1]), ("b", 1, ["rows", None]), ("c", 1, ["n", 3])])
    )
    # c is declared wrongly: what is inferred counts.
    assert [o.shape for o in session.get_outputs()] == [[None, 1], ["rows", 2], ["n", 2]]


def test_metadata_are_the_models_own(tmp_path):
    import onnx

    made = onnx.ModelProto.FromString(model([helper.make_node("Neg", ["x"], ["y"])], [("x", 1, [1])], [("y", 1, [1])]))
    made.domain, made.doc_string, made.model_version, made.producer_version = "org.example", "of the model", 7, "2.0"
    made.graph.name, made.graph.doc_string = "main", "of the graph"
    own = {"description": "another", "domain": "another", "producer_name": "somebody", "model_version": "none", "author": "me"}
    helper.set_model_props(made, own)
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    of_file = ort.InferenceSession(path)
    assert vars(of_file.get_modelmeta()) == vars(ort.InferenceSession(made).get_modelmeta())
    # Nobody asked before the file was gone: what the engine kept.
    gone = ort.InferenceSession(path)
    path.unlink()
    assert gone.get_modelmeta().producer_version == "2.0" and gone.get_outputs()[0].shape == [1]
    assert gone.get_modelmeta().custom_metadata_map == own
    meta = of_file.get_modelmeta()
    assert (meta.producer_name, meta.producer_version, meta.domain, meta.description) == ("tests", "2.0", "org.example", "of the model")
    assert (meta.version, meta.graph_name, meta.graph_description) == (7, "main", "of the graph")
    assert meta.custom_metadata_map == own


def test_custom_metadata_do_not_stand_in_for_fields_that_the_model_lacks(tmp_path):
    import onnx

    made = onnx.ModelProto.FromString(model([helper.make_node("Neg", ["x"], ["y"])], [("x", 1, [1])], [("y", 1, [1])]))
    made.ClearField("producer_name")
    own = {"description": "another", "domain": "another", "producer_name": "somebody", "model_version": "3"}
    helper.set_model_props(made, own)
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    of_file, gone = ort.InferenceSession(path), ort.InferenceSession(path)
    of_file.get_modelmeta()
    path.unlink()
    for meta in (of_file.get_modelmeta(), gone.get_modelmeta()):
        assert (meta.producer_name, meta.domain, meta.description, meta.version) == ("", "", "", 0)
        assert meta.custom_metadata_map == own


def test_run(add):
    (z,) = add.run(None, {"x": ONES, "y": np.float32([1, 2, 3])})
    assert z.dtype == np.float32 and z.tolist() == [[2, 3, 4], [2, 3, 4]]
    assert z.flags.writeable and z.flags.c_contiguous
    assert add.run(["z", "z"], {"x": ONES, "y": [1, 2, 3]})[1].tolist() == z.tolist()


def test_outputs_outlive_their_session():
    session = ort.InferenceSession(model([helper.make_node("Neg", ["x"], ["y"])], [("x", 1, [4])], [("y", 1, [4])]))
    (y,) = session.run(None, {"x": np.arange(4, dtype=np.float32)})
    del session
    gc.collect()
    y += 1
    assert y.tolist() == [1, 0, -1, -2]


def test_outputs_never_share_memory_with_inputs():
    one = helper.make_tensor("one", TensorProto.FLOAT, [2], [1, 1])
    session = ort.InferenceSession(
        model(
            [helper.make_node("Identity", ["x"], ["a"]), helper.make_node("Identity", ["one"], ["b"]),
             helper.make_node("SequenceConstruct", ["x", "one"], ["s"])],
            [("x", 1, [2])],
            [("a", 1, [2]), ("b", 1, [2]), helper.make_tensor_sequence_value_info("s", 1, None)],
            [one],
        )
    )
    x = np.float32([5, 6])
    a, b, s = session.run(None, {"x": x})
    for array in (a, b, *s):
        array[:] = 0
    assert x.tolist() == [5, 6]
    assert [v.tolist() for v in session.run(["b"], {"x": x})] == [[1, 1]]


def test_layouts_and_byte_orders(add):
    wide = np.arange(12, dtype=np.float32).reshape(2, 6)
    for x in (wide[:, ::2], np.asfortranarray(wide[:, :3]), wide[:, :3].astype(">f4"), wide[::-1, :3]):
        np.testing.assert_array_equal(add.run(None, {"x": x, "y": np.zeros(3, np.float32)})[0], x)
    read_only = ONES.copy()
    read_only.flags.writeable = False
    assert add.run(None, {"x": read_only, "y": [0, 0, 0]})[0].tolist() == ONES.tolist()


def test_large_inputs_are_not_copied():
    session = ort.InferenceSession(model([helper.make_node("Shape", ["x"], ["y"])], [("x", 1, ["n"])], [("y", 7, [1])]))
    session.run(None, {"x": np.zeros(1 << 26, np.float32)})
    assert session.report()["peak_bytes"] < 1 << 20


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,), (2, 3)])
def test_shapes(shape):
    session = ort.InferenceSession(model([helper.make_node("Neg", ["x"], ["y"])], [("x", 1, None)], [("y", 1, None)]))
    assert session.get_inputs()[0].shape is None
    (y,) = session.run(None, {"x": np.ones(shape, np.float32)})
    assert isinstance(y, np.ndarray) and y.shape == shape and (y == -1).all()


NUMPY_TYPES = "float32 float64 float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128"
EXTENSION_TYPES = "bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float4_e2m1fn int4 uint4 int2 uint2"


@pytest.mark.parametrize("name", NUMPY_TYPES.split() + EXTENSION_TYPES.split())
def test_every_type_passes_through(name):
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, name) if name in EXTENSION_TYPES.split() else name)
    number = helper.np_dtype_to_tensor_dtype(dtype)
    session = ort.InferenceSession(
        model([helper.make_node("Identity", ["x"], ["y"])], [("x", number, None)], [("y", number, None)], opset=25)
    )
    for shape in ((), (3,), (2, 3)):
        x = np.zeros(shape, dtype)
        x[...] = np.ones((), dtype)
        (y,) = session.run(None, {"x": x})
        assert y.dtype == dtype and y.shape == shape
        np.testing.assert_array_equal(y.astype(np.complex128), x.astype(np.complex128))
    assert session.get_inputs()[0].type == ort.OrtValue(x).data_type()


def test_starting_imports_no_more_than_numpy(tmp_path):
    path = tmp_path / "neg.onnx"
    path.write_bytes(model([helper.make_node("Neg", ["x"], ["y"])], [("x", 1, [2])], [("y", 1, [2])]))
    program = f"""if True:
        import sys, numpy, sardonyx
        session = sardonyx.InferenceSession({str(path)!r})
        assert session.run(None, {{"x": numpy.ones(2, numpy.float32)}})[0].tolist() == [-1, -1]
        assert "ml_dtypes" not in sys.modules, "7 to 10 ms of every start"
        assert not {{"sardonyx._values", "sardonyx._enums"}} & sys.modules.keys(), "what few programs use"
        names = {{}}
        exec("from sardonyx import *", names)
        assert set(sardonyx.__all__) <= names.keys() and set(sardonyx.__all__) <= set(dir(sardonyx))
        assert names["SessionOptions"]().graph_optimization_level is names["GraphOptimizationLevel"].ORT_ENABLE_ALL
    """
    subprocess.run([sys.executable, "-c", program], check=True)


def test_threads_that_meet_a_type_of_ml_dtypes_for_the_first_time_together(tmp_path):
    path = tmp_path / "cast.onnx"
    path.write_bytes(model([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16)], [("x", 1, [2])], [("y", 16, [2])]))
    program = f"""if True:
        import sys, threading, time, numpy, sardonyx

        class Slow:  # lets the other thread run while this one imports
            def find_spec(self, name, path=None, target=None):
                if name == "ml_dtypes":
                    time.sleep(0.3)

        session = sardonyx.InferenceSession({str(path)!r})
        sys.meta_path.insert(0, Slow())
        kinds = []
        run = lambda: kinds.append(session.run(None, {{"x": numpy.ones(2, numpy.float32)}})[0].dtype.name)
        threads = [threading.Thread(target=run, daemon=True) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert kinds == ["bfloat16"] * 3, kinds
    """
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_bits_in_place_of_types_that_numpy_lacks():
    session = ort.InferenceSession(
        model([helper.make_node("Cast", ["x"], ["y"], to=1)], [("x", TensorProto.BFLOAT16, None)], [("y", 1, None)])
    )
    assert session.run(None, {"x": np.uint16([0x3F80, 0xC000])})[0].tolist() == [1, -2]
    session = ort.InferenceSession(
        model([helper.make_node("Cast", ["x"], ["y"], to=1)], [("x", TensorProto.INT4, None)], [("y", 1, None)])
    )
    assert session.run(None, {"x": np.int8([-8, 7, 3])})[0].tolist() == [-8, 7, 3]


def test_text():
    session = ort.InferenceSession(
        model([helper.make_node("StringConcat", ["x", "x"], ["y"])], [("x", 8, None)], [("y", 8, None)])
    )
    assert session.get_inputs()[0].type == "tensor(string)"
    for x in (np.array(["a", "süß"], dtype=object), np.array(["a", "süß"]), ["a", "süß"], np.array([b"a", "süß".encode()], dtype=object)):
        (y,) = session.run(None, {"x": x})
        assert y.dtype == object and y.tolist() == ["aa", "süßsüß"]
    assert session.run(None, {"x": np.array("s", dtype=object)})[0].item() == "ss"
    with pytest.raises(ort.InvalidArgument, match="int"):
        session.run(None, {"x": np.array([1, 2], dtype=object)})


def test_sequences():
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.INT64, None)
    session = ort.InferenceSession(
        model([helper.make_node("SequenceLength", ["s"], ["n"]), helper.make_node("Identity", ["s"], ["t"])], [sequence],
              [("n", 7, []), helper.make_tensor_sequence_value_info("t", TensorProto.INT64, None)])
    )
    assert session.get_inputs()[0].type == "seq(tensor(int64))"
    n, t = session.run(None, {"s": [np.int64([1, 2]), np.int64([3])]})
    assert n == 2 and [v.tolist() for v in t] == [[1, 2], [3]]
    n, t = session.run(None, {"s": []})
    assert n == 0 and t == []


def test_optionals():
    info = helper.make_value_info("x", helper.make_optional_type_proto(helper.make_tensor_type_proto(1, [2])))
    session = ort.InferenceSession(model([helper.make_node("OptionalHasElement", ["x"], ["y"])], [info], [("y", 9, [])]))
    assert session.get_inputs()[0].type == "optional(tensor(float))"
    assert not session.run(None, {"x": None})[0]
    assert session.run(None, {"x": np.float32([1, 2])})[0]


def test_maps():
    vectorizer = helper.make_node("DictVectorizer", ["m"], ["y"], domain="ai.onnx.ml", string_vocabulary=["a", "b", "c"])
    info = helper.make_value_info("m", helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(1, [])))
    session = ort.InferenceSession(model([vectorizer], [info], [("y", 1, None)], domains=[("ai.onnx.ml", 1)]))
    assert session.get_inputs()[0].type == "map(string,tensor(float))"
    assert session.run(None, {"m": {"c": 2.5, "a": 1}})[0].ravel().tolist() == [1, 0, 2.5]
    zip_map = helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_strings=["no", "yes"])
    info = onnx_maps()
    session = ort.InferenceSession(model([zip_map], [("x", 1, ["n", 2])], [info], domains=[("ai.onnx.ml", 1)]))
    assert session.run(None, {"x": np.float32([[0.25, 0.75], [1, 0]])})[0] == [{"no": 0.25, "yes": 0.75}, {"no": 1, "yes": 0}]


def onnx_maps():
    map_type = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(1, []))
    return helper.make_value_info("y", helper.make_sequence_type_proto(map_type))


def test_errors_are_classes(add, tmp_path):
    with pytest.raises(ort.InvalidArgument, match="'x'.*float32.*float64"):
        add.run(None, {"x": ONES.astype(np.float64), "y": [1, 2, 3]})
    with pytest.raises(ValueError, match="missing input 'y'"):
        add.run(None, {"x": ONES})
    with pytest.raises(ort.InvalidArgument, match="no input 'xx'; did you mean 'x'"):
        add.run(None, {"xx": ONES, "y": [1, 2, 3]})
    with pytest.raises(ort.InvalidArgument, match="no output 'zz'"):
        add.run(["zz"], {"x": ONES, "y": [1, 2, 3]})
    with pytest.raises(ort.InvalidArgument, match="datetime64"):
        add.run(None, {"x": np.zeros((2, 3), "datetime64[s]"), "y": [1, 2, 3]})
    with pytest.raises(ort.InvalidArgument, match="str"):
        add.run(None, {"x": "text", "y": [1, 2, 3]})
    # What people search for.
    with pytest.raises(ort.InvalidArgument, match=r"Unexpected input data type. Actual: \(tensor\(double\)\) , expected: \(tensor\(float\)\)"):
        add.run(None, {"x": ONES.astype(np.float64), "y": [1, 2, 3]})
    with pytest.raises(ort.InvalidArgument, match=r"Required inputs \(\['y'\]\) are missing from input feed \(\['x'\]\)"):
        add.run(None, {"x": ONES})
    with pytest.raises(ort.InvalidArgument, match="Invalid input name: z"):
        add.run(None, {"x": ONES, "y": [1, 2, 3], "z": ONES})
    with pytest.raises(ort.InvalidArgument, match="Invalid output name:zz"):
        add.run(["zz"], {"x": ONES, "y": [1, 2, 3]})
    with pytest.raises(ort.NoSuchFile, match="absent.onnx"):
        ort.InferenceSession(tmp_path / "absent.onnx")
    with pytest.raises(ort.InvalidArgument, match="no bytes"):
        ort.InferenceSession(b"")
    with pytest.raises(TypeError, match="int"):
        ort.InferenceSession(5)
    with pytest.raises(ort.NotImplemented, match="Absent"):
        ort.InferenceSession(model([helper.make_node("Absent", ["x"], ["y"])], [("x", 1, [1])], [("y", 1, [1])]))
    assert issubclass(ort.InvalidArgument, ort.Error) and issubclass(ort.Error, RuntimeError)
    assert add.run(None, {"x": ONES, "y": [0, 0, 0]})[0].tolist() == ONES.tolist()


def test_what_is_no_model_is_told_from_what_breaks_a_rule(add, tmp_path):
    good = model([helper.make_node("Neg", ["x"], ["y"])], [("x", 1, [1])], [("y", 1, [1])])
    for data in (b"\xff\xff\xff\xff", b"no model", good[:-3]):
        path = tmp_path / "model.onnx"
        path.write_bytes(data)
        for source in (data, path):
            with pytest.raises(ort.InvalidProtobuf) as raised:
                ort.InferenceSession(source)
            assert raised.value.code == "invalid_model"
    broken = model([helper.make_node("Neg", ["absent"], ["y"])], [("x", 1, [1])], [("y", 1, [1])])
    path.write_bytes(broken)
    for source in (broken, path):
        with pytest.raises(ort.InvalidGraph, match="absent") as raised:
            ort.InferenceSession(source)
        assert type(raised.value) is ort.InvalidGraph


def test_lone_surrogates_are_refused(add):
    text = ort.InferenceSession(model([helper.make_node("Identity", ["x"], ["y"])], [("x", 8, None)], [("y", 8, None)]))
    for x in (np.array(["\ud800"], dtype=object), ["\ud800"], "\ud800"):
        with pytest.raises(UnicodeEncodeError):
            text.run(None, {"x": x})
    # Bytes that are no text come as Python's file names do, and go back so.
    assert text.run(None, {"x": np.array([b"\xff"], dtype=object)})[0].tolist() == ["\udcff"]
    assert text.run(None, {"x": ["\udcff"]})[0].tolist() == ["\udcff"]
    for call in (lambda: add.run(["\ud800"], {"x": ONES, "y": [0, 0, 0]}), lambda: add.run(None, {"\ud800": ONES}),
                 lambda: ort.InferenceSession("\ud800"), lambda: add.dump("\ud800")):
        with pytest.raises((UnicodeEncodeError, ort.NoSuchFile)):
            call()


def test_sparse_constants():
    values, places = helper.make_tensor("v", 1, [2], [3, 4]), helper.make_tensor("i", TensorProto.INT64, [2], [1, 5])
    node = helper.make_node("Constant", [], ["y"], sparse_value=helper.make_sparse_tensor(values, places, [2, 3]))
    (y,) = ort.InferenceSession(model([node], [], [("y", 1, None)])).run(None, {})
    assert y.tolist() == [[0, 3, 0], [0, 0, 4]]


def test_errors_quote_what_is_no_text():
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], reduction=b"\xff\xfe")
    with pytest.raises(ort.InvalidGraph, match=r"\\xff\\xfe"):
        session = ort.InferenceSession(
            model([node], [("x", 1, [1]), ("i", 7, [1]), ("u", 1, [1])], [("y", 1, [1])], opset=18))
        session.run(None, {"x": [1], "i": [0], "u": [1]})


def test_errors_of_memory_name_the_node():
    options = ort.SessionOptions()
    options.memory_limit = 1 << 20
    nodes = [helper.make_node("Expand", ["x", "s"], ["wide"], name="widen"), helper.make_node("ReduceSum", ["wide"], ["y"])]
    shape = helper.make_tensor("s", TensorProto.INT64, [1], [1 << 25])
    for outputs in (["y"], ["wide"]):
        session = ort.InferenceSession(model(nodes, [("x", 1, [1])], [(n, 1, None) for n in outputs], [shape], opset=18), options)
        with pytest.raises(MemoryError, match=r"(?s)'widen'.*in model '\(memory\)'"):
            session.run(None, {"x": [1]})


def test_files_paths_and_protos(tmp_path):
    import onnx

    data = model([helper.make_node("Neg", ["x"], ["y"])], [("x", 1, [1])], [("y", 1, [1])])
    path = tmp_path / "neg.onnx"
    path.write_bytes(data)
    for what in (path, str(path), data, bytearray(data), onnx.load(path)):
        assert ort.InferenceSession(what).run(None, {"x": [3]})[0].tolist() == [-3]


def test_defaults_may_be_overridden():
    one = helper.make_tensor("w", TensorProto.FLOAT, [1], [1])
    session = ort.InferenceSession(
        model([helper.make_node("Add", ["x", "w"], ["y"])], [("x", 1, [1]), ("w", 1, [1])], [("y", 1, [1])], [one])
    )
    assert [i.name for i in session.get_inputs()] == ["x"]
    assert [i.name for i in session.get_overridable_initializers()] == ["w"]
    assert session.run(None, {"x": [1]})[0] == 2 and session.run(None, {"x": [1], "w": [5]})[0] == 6


def test_session_options():
    data = model([helper.make_node("Neg", ["x"], ["y"])], [("x", 1, ["n"])], [("y", 1, ["n"])])
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_free_dimension_override_by_name("n", 4)
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"], provider_options=[{}])
    assert session.get_inputs()[0].shape == [4]
    with pytest.raises(AttributeError, match="did you mean 'intra_op_num_threads'"):
        options.intra_op_num_thread = 1
    with pytest.raises(ort.InvalidArgument, match="does not have configuration with key: absent"):
        options.get_session_config_entry("absent")
    with pytest.raises(ort.InvalidArgument, match="no pass 'absent'"):
        options.disabled_passes = ["absent"]
    with pytest.raises(ort.InvalidArgument, match="'cpuu'"):
        ort.InferenceSession(data, providers=["cpuu"])
    options.strict = True
    with pytest.raises(ort.EPFail, match="coreml"):
        ort.InferenceSession(data, options, providers=[("CoreMLExecutionProvider", {"ModelFormat": "MLProgram"}), "CPUExecutionProvider"])


def test_memory_limit():
    options = ort.SessionOptions()
    options.memory_limit = 1 << 20
    fill = helper.make_node("ConstantOfShape", ["x"], ["y"])
    session = ort.InferenceSession(model([fill], [("x", 7, [1])], [("y", 1, None)]), options)
    with pytest.raises(MemoryError, match="1048576"):
        session.run(None, {"x": [1 << 30]})


def test_profile(tmp_path):
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "trace")
    data = model([helper.make_node("Erf", ["x"], ["y"])], [("x", 1, [1])], [("y", 1, [1])])
    session = ort.InferenceSession(data, options)
    session.run(None, {"x": [1]})
    session.run(None, {"x": [2]})
    with open(session.end_profiling(), encoding="utf-8") as trace:
        events = json.load(trace)
    assert all(e["ph"] == "X" and {"cat", "pid", "tid", "dur", "ts", "name", "args"} <= e.keys() for e in events)
    assert [e["name"] for e in events if e["cat"] == "Session"][:2] == ["model_loading_array", "session_initialization"]
    assert [e["name"] for e in events].count("model_run") == [e["name"] for e in events].count("SequentialExecutor::Execute") == 2
    nodes = [e for e in events if e["cat"] == "Node"]
    assert [e["args"]["op_name"] for e in nodes] == ["Erf", "Erf"] and all(e["name"].endswith("_kernel_time") for e in nodes)
    assert {(e["args"]["provider"], e["args"]["node_index"]) for e in nodes} == {("CPUExecutionProvider", "0")}
    for shapes in ("input_type_shape", "output_type_shape"):
        assert [e["args"][shapes] for e in nodes] == [[{"float": [1]}], [{"float": [1]}]]
    assert {(e["args"]["parameter_size"], e["args"]["activation_size"], e["args"]["output_size"]) for e in nodes} == {("0", "4", "4")}
    assert [e["args"]["run"] for e in nodes] == sorted(e["args"]["run"] for e in nodes)
    assert ort.InferenceSession(data).end_profiling() == ""


def test_report_and_dump(add):
    report = add.report()
    assert [n["op"] for n in report["nodes"]] == ["Add"] and report["providers"] == ["cpu"] and "nodes" in report["text"]
    assert "Add" in add.dump("loaded")
    assert any(p["name"] == "cpu" and p["available"] for p in ort.providers())
    assert "CPUExecutionProvider" in ort.get_available_providers() and ort.get_device() in ("CPU", "GPU")


def test_run_leaves_python_running(endless):
    """While one thread is inside a run, this one ends it."""
    options = ort.RunOptions()
    failures = []

    def work():
        try:
            endless.run(None, {"x": 1}, options)
        except ort.Cancelled as e:
            failures.append(e)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.05)
    assert thread.is_alive()
    options.terminate = True
    thread.join(20)
    assert len(failures) == 1
    with pytest.raises(ort.Cancelled):
        endless.run(None, {"x": 1}, options)


def test_timeout(endless):
    options = ort.RunOptions()
    options.timeout = 0.05
    with pytest.raises(TimeoutError):
        endless.run(None, {"x": 1}, options)


def test_many_threads(add):
    wrong = []

    def work(k):
        y = np.full(3, k, np.float32)
        for n in range(1, 60):
            (z,) = add.run(None, {"x": np.ones((n % 7, 3), np.float32), "y": y})
            if z.shape != (n % 7, 3) or (z != k + 1).any():
                wrong.append((k, n))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_run_async(add):
    done = threading.Event()
    seen = []

    def callback(outputs, data, error):
        seen.append((outputs, data, error))
        done.set()

    add.run_async(None, {"x": ONES, "y": [0, 0, 0]}, callback, "mine")
    assert done.wait(20) and seen[0][1:] == ("mine", "") and seen[0][0][0].tolist() == ONES.tolist()
    done.clear()
    add.run_async(None, {"x": ONES}, callback, None)
    assert done.wait(20) and "missing input" in seen[1][2]


def test_ort_values(add):
    x = ort.OrtValue.ortvalue_from_numpy(ONES)
    y = ort.OrtValue.ortvalue_from_shape_and_type([3], np.float32, "cpu", 0)
    y.update_inplace(np.float32([1, 1, 1]))
    (z,) = add.run_with_ort_values(["z"], {"x": x, "y": y})
    assert z.is_tensor() and z.has_value() and z.shape() == [2, 3] and z.data_type() == "tensor(float)"
    assert z.element_type() == TensorProto.FLOAT and z.device_name() == "cpu" and (z.numpy() == 2).all()
    with pytest.raises(ort.InvalidArgument, match="shape"):
        y.update_inplace(np.float32([1]))


def test_io_binding(add):
    binding = add.io_binding()
    binding.bind_cpu_input("x", ONES)
    y = np.float32([1, 2, 3])
    binding.bind_input("y", "cpu", 0, np.float32, [3], y.ctypes.data)
    binding.bind_output("z")
    add.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [[2, 3, 4]] * 2
    held = np.zeros((2, 3), np.float32)
    binding.bind_output("z", "cpu", 0, np.float32, held.shape, held.ctypes.data)
    y[:] = 5
    add.run_with_iobinding(binding)
    assert (held == 6).all() and binding.get_outputs()[0].data_ptr() == held.ctypes.data
    with pytest.raises(ort.InvalidArgument, match="no input 'w'"):
        binding.bind_cpu_input("w", ONES)


def test_two_hundred_sessions_leave_no_memory_behind(add):
    import resource

    data = model([helper.make_node("Neg", ["x"], ["y"])], [("x", 1, ["n"])], [("y", 1, ["n"])])
    x = np.zeros(1 << 18, np.float32)

    def use():
        for _ in range(100):
            ort.InferenceSession(data).run(None, {"x": x})

    use()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    use()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KiB; one run's output is 1 MiB


def test_compiled_models_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("SDX_CACHE_DIR", str(tmp_path / "cache"))
    weights = np.linspace(-1, 1, 64 * 96, dtype=np.float32).reshape(64, 96)
    path = tmp_path / "net.onnx"
    path.write_bytes(model([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", 1, ["n", 64])], [("y", 1, ["n", 96])],
                           [helper.make_tensor("w", TensorProto.FLOAT, [64, 96], weights.tobytes(), raw=True)]))
    x = np.linspace(0, 1, 128, dtype=np.float32).reshape(2, 64)
    options = ort.SessionOptions()
    options.keep_compiled = True
    first = ort.InferenceSession(str(path), options, providers=["cpu"])
    second = ort.InferenceSession(str(path), providers=["cpu"])
    assert first.report()["compiled"] == "" and second.report()["compiled"].startswith(str(tmp_path))
    np.testing.assert_array_equal(first.run(None, {"x": x})[0], second.run(None, {"x": x})[0])


def test_operators_of_a_library_made_for_onnx_runtime():
    library = Path(ort.__file__).parents[2] / "tests" / "custom_ops" / "libort_ops.so"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    nodes = [helper.make_node("Twice", ["x"], ["y"], domain="ort.example")]
    data = model(nodes, [("x", TensorProto.FLOAT, ["n"])], [("y", TensorProto.FLOAT, ["n"])], domains=[("ort.example", 1)])
    options = ort.SessionOptions()
    options.register_custom_ops_library(library)
    session = ort.InferenceSession(data, options, providers=["cpu"])
    assert session.run(None, {"x": [1, -2, 4]})[0].tolist() == [2, -4, 8]
    options = ort.SessionOptions()
    options.register_custom_ops_library(library.with_name("libort_ops_refused.so"))
    with pytest.raises(ort.Error, match="no licence"):
        ort.InferenceSession(data, options, providers=["cpu"])


def test_operators_of_a_library():
    library = Path(ort.__file__).parents[2] / "tests" / "custom_ops" / "libexample_ops.so"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    nodes = [helper.make_node("ScaledSquare", ["x"], ["y"], domain="example", scale=3.0)]
    data = model(nodes, [("x", TensorProto.FLOAT, ["n"])], [("y", TensorProto.FLOAT, ["n"])], domains=[("example", 1)])
    options = ort.SessionOptions()
    options.register_custom_ops_library(library)
    session = ort.InferenceSession(data, options, providers=["cpu"])
    assert session.run(None, {"x": [1, -2, 4]})[0].tolist() == [3, 12, 48]
    with pytest.raises(ort.NotImplemented, match="ScaledSquare"):
        ort.InferenceSession(data, providers=["cpu"])
    options.register_custom_ops_library("nowhere.so")
    with pytest.raises(ort.Error, match="nowhere.so"):
        ort.InferenceSession(data, options, providers=["cpu"])
