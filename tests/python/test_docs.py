"""The examples of docs/python.md run, one after the other, but for those whose models are large."""

import re
from pathlib import Path

from conftest import model
from onnx import TensorProto, helper

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def test_the_examples_run(tmp_path, monkeypatch, capsys):
    weights = helper.make_tensor("w", TensorProto.FLOAT, [3, 2], [1, 2, 3, 4, 5, 6])
    data = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", 1, ["n", 3])], [("y", 1, ["n", 2])], [weights])
    (tmp_path / "model.onnx").write_bytes(data)
    monkeypatch.chdir(tmp_path)
    names = {}
    blocks = [b for b in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL) if "LanguageModel" not in b]
    assert len(blocks) >= 4
    for block in blocks:
        exec(block, names)  # noqa: S102
    printed = capsys.readouterr().out
    for line in ("x tensor(float) ['n', 3]", "14.0 [2.0, 4.0, 6.0]", "invalid_argument Unexpected input data type. Actual: (tensor(double))", "input 'x' must be float32[n,3], received float64[2,3]"):
        assert line in printed
    assert {"dynamic.onnx", "static.onnx"} <= {p.name for p in tmp_path.iterdir()}


def test_the_errors_are_those_of_the_page():
    import sardonyx

    rows = re.findall(r"^\| `(\w+)` \|(.*?)\| `(\w+)`", PAGE.read_text(encoding="utf-8").split("## Errors")[1], re.MULTILINE)
    assert {"InvalidProtobuf", "DeadlineExceeded", "Fail"} <= {r[0] for r in rows}
    for name, also, code in rows:
        error = getattr(sardonyx, name)
        assert issubclass(error, sardonyx.Error) and error.code == code
        for base in re.findall(r"`(\w+)`", also):
            assert base in {c.__name__ for c in error.__mro__}
