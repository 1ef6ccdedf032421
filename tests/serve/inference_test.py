"""inference_test.py SDX: the Open Inference Protocol over HTTP as any client sees it. Standard library only."""

import gzip
import json
import struct
import sys
import threading
import unittest
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from model_files import find_models  # noqa: E402
from inference_models import gray_pixels, times, write, write_repository  # noqa: E402
from scratch import scratch  # noqa: E402
from server import Server, wait_until  # noqa: E402

SDX = sys.argv.pop(1)
ONES, COUNT = [1] * 16, list(range(16))


def tensor(name, datatype, shape, data):
    return {"name": name, "datatype": datatype, "shape": shape, "data": data}


def pair(a=COUNT, b=ONES, datatype="INT32"):
    return {"inputs": [tensor("INPUT0", datatype, [1, 16], a), tensor("INPUT1", datatype, [1, 16], b)]}


class Protocol(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.repository = cls.enterClassContext(scratch())
        write_repository(cls.repository)
        cls.server = Server(SDX, "--repository", cls.repository)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)

    def infer(self, model, body, status=200):
        return self.server.json("POST", f"/v2/models/{model}/infer", body, status)

    def error(self, method, path, body, status, *parts):
        message = self.server.json(method, path, body, status)["error"]
        for part in parts:
            self.assertIn(part, message)

    def test_a_field_of_a_form_is_no_larger_than_a_body_of_json(self):
        for padding, status in ((0, 200), (33 << 20, 413)):
            form = (b'--XX\r\nContent-Disposition: form-data; name="x"\r\n\r\n[[1, 3, 2]]' + b" " * padding + b"\r\n--XX--\r\n")
            answer = self.server.ask("POST", "/predict/scores", form, {"Content-Type": "multipart/form-data; boundary=XX"})
            self.assertEqual(answer.status, status, answer.body)

    def test_outputs_that_the_model_lacks(self):
        self.error("POST", "/v2/models/simple/infer", {**pair(), "outputs": [{"name": "OUTPUT7"}]}, 400, "no output 'OUTPUT7'")

    def test_predict_takes_no_larger_batches(self):
        self.error("POST", "/predict/scores", {"x": [[1, 2, 3]] * 17}, 400, "17 samples", "max_batch_size")

    def test_health_and_metadata(self):
        for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/simple/ready", "/v2/models/simple/versions/1/ready"):
            self.assertEqual(self.server.ask("GET", path).status, 200, path)
        self.assertEqual(self.server.json("GET", "/v2/health/live"), {"live": True})
        self.assertEqual(self.server.json("GET", "/v2/models/simple/ready"), {"name": "simple", "ready": True})
        server = self.server.json("GET", "/v2")
        self.assertEqual(server["name"], "sardonyx")
        self.assertIn("binary_tensor_data", server["extensions"])
        model = self.server.json("GET", "/v2/models/simple")
        self.assertEqual((model["name"], model["versions"], model["platform"]), ("simple", ["1"], "onnxruntime_onnx"))
        self.assertEqual(model["inputs"][0], {"name": "INPUT0", "datatype": "INT32", "shape": [-1, 16]})
        self.assertEqual(self.server.json("GET", "/v2/models/versions")["versions"], ["1", "2"])

    def test_config(self):
        config = self.server.json("GET", "/v2/models/simple/config")
        self.assertEqual(config["max_batch_size"], 8)
        self.assertEqual(config["input"][0], {"name": "INPUT0", "data_type": "TYPE_INT32", "dims": [16]})
        config = self.server.json("GET", "/v2/models/scores/config")
        self.assertEqual(config["dynamic_batching"]["preferred_batch_size"], [8])
        self.assertEqual(config["dynamic_batching"]["max_queue_delay_microseconds"], 2000)
        self.assertTrue(any("optimization" in line and "ignored" in line for line in self.server.lines), self.server.lines)

    def test_json_tensors(self):
        answer = self.infer("simple", {"id": "a \"7\"", **pair()})
        self.assertEqual((answer["model_name"], answer["model_version"], answer["id"]), ("simple", "1", 'a "7"'))
        self.assertEqual([o["name"] for o in answer["outputs"]], ["OUTPUT0", "OUTPUT1"])
        self.assertEqual(answer["outputs"][0], tensor("OUTPUT0", "INT32", [1, 16], [i + 1 for i in COUNT]))
        self.assertEqual(answer["outputs"][1]["data"], [i - 1 for i in COUNT])

    def test_one_symbol_of_two_sizes(self):
        a, b = [i % 101 for i in range(320)], list(range(64))
        operands = lambda rows: [tensor("a", "UINT8", [5, 64], a), tensor("b", "UINT8", [rows, 64], b * rows)]
        answer = self.infer("quantised_sum", {"inputs": operands(1)})
        self.assertEqual(answer["outputs"], [tensor("y", "UINT8", [5, 64], [x + b[i % 64] for i, x in enumerate(a)])])
        error = self.infer("quantised_sum", {"inputs": operands(3)}, 400)["error"]
        for part in ("symbol 'n'", "5 in input 'a'", "3 in input 'b'"):
            self.assertIn(part, error)
        self.infer("quantised_sum", {"inputs": operands(5)})

    def test_null_says_nothing(self):
        body = {**pair(), "id": None, "outputs": None, "parameters": None}
        body["inputs"] = [{**tensor, "parameters": {"binary_data_size": None}} for tensor in body["inputs"]]
        self.assertEqual(self.infer("simple", body), self.infer("simple", pair()))
        self.assertEqual(self.server.json("POST", "/v2/repository/index", {"ready": None}), self.server.json("POST", "/v2/repository/index", {}))

    def test_nested_data_and_chosen_outputs(self):
        answer = self.infer("simple", {**pair([COUNT]), "outputs": [{"name": "OUTPUT1"}]})
        self.assertEqual([o["name"] for o in answer["outputs"]], ["OUTPUT1"])
        answer = self.infer("versions/versions/2", {"inputs": [tensor("x", "FP32", [2, 2], [[1.5, -2e-3], [1e30, 0]])]})
        self.assertEqual([struct.unpack("<f", struct.pack("<f", v))[0] for v in answer["outputs"][0]["data"]],
                         [struct.unpack("<f", struct.pack("<f", v))[0] for v in (3.0, -4e-3, 2e30, 0.0)])

    def test_texts(self):
        answer = self.infer("simple_string", pair([str(i) for i in COUNT], ["1"] * 16, "BYTES"))
        self.assertEqual(answer["outputs"][0]["data"], [str(i + 1) for i in COUNT])
        texts = ["", "é", "a\"b\\c\n", "日本", "\U0001F600"]
        answer = self.infer("simple_identity", {"inputs": [tensor("INPUT0", "BYTES", [1, 5], texts)]})
        self.assertEqual(answer["outputs"][0]["data"], texts)

    def binary(self, model, document, blobs, path="/v2/models/{}/infer"):
        head = json.dumps(document).encode()
        answer = self.server.ask("POST", path.format(model), head + b"".join(blobs), {"Inference-Header-Content-Length": str(len(head))})
        status, headers, body = answer.status, answer.headers, answer.body
        if status != 200 or "Inference-Header-Content-Length" not in headers:
            return status, json.loads(body), b""
        at = int(headers["Inference-Header-Content-Length"])
        return status, json.loads(body[:at]), body[at:]

    def test_binary_tensors_both_ways(self):
        blobs = [struct.pack("<16i", *COUNT), struct.pack("<16i", *ONES)]
        inputs = [{"name": f"INPUT{i}", "datatype": "INT32", "shape": [1, 16], "parameters": {"binary_data_size": 64}} for i in (0, 1)]
        outputs = [{"name": "OUTPUT1", "parameters": {"binary_data": True}}, {"name": "OUTPUT0", "parameters": {"binary_data": False}}]
        status, head, tail = self.binary("simple", {"inputs": inputs, "outputs": outputs}, blobs)
        self.assertEqual(status, 200)
        self.assertEqual(head["outputs"][0]["parameters"], {"binary_data_size": 64})
        self.assertEqual(list(struct.unpack("<16i", tail)), [i - 1 for i in COUNT])
        self.assertEqual(head["outputs"][1]["data"], [i + 1 for i in COUNT])
        status, head, tail = self.binary("simple", {"inputs": inputs, "parameters": {"binary_data_output": True}}, blobs)
        self.assertEqual(len(tail), 128)
        texts = [b"\xff\x00", b"", b"abc"]
        blob = b"".join(struct.pack("<I", len(t)) + t for t in texts)
        one = {"name": "INPUT0", "datatype": "BYTES", "shape": [1, 3], "parameters": {"binary_data_size": len(blob)}}
        status, head, tail = self.binary("simple_identity", {"inputs": [one], "parameters": {"binary_data_output": True}}, [blob])
        self.assertEqual((status, tail), (200, blob))
        status, head, _ = self.binary("simple_identity", {"inputs": [one]}, [blob])
        self.assertEqual(status, 400)
        self.assertIn("not UTF-8", head["error"])

    def test_packed_bodies(self):
        body = json.dumps(pair()).encode()
        for encoding, packed in (("gzip", gzip.compress(body)), ("deflate", zlib.compress(body))):
            answer = self.server.ask("POST", "/v2/models/simple/infer", packed, {"Content-Encoding": encoding})
            self.assertEqual(answer.status, 200, answer.body)
            self.assertEqual(answer.json()["outputs"][1]["data"], [i - 1 for i in COUNT])
        bomb = gzip.compress(b"[" * 300_000_000, 9)
        self.assertLess(len(bomb), 1_000_000)
        self.assertEqual(self.server.ask("POST", "/v2/models/simple/infer", bomb, {"Content-Encoding": "gzip"}).status, 413)

    def test_a_body_without_json(self):
        answer = self.server.ask("POST", "/v2/models/scores/infer", struct.pack("<3f", 1, 2, 3), {"Inference-Header-Content-Length": "0"})
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(struct.unpack("<3f", answer.body[int(answer.headers["Inference-Header-Content-Length"]):]), (1, 2, 3))

    def test_classification(self):
        body = {"inputs": [tensor("x", "FP32", [2, 3], [0.1, 0.7, 0.2, 3, 1, 2])],
                "outputs": [{"name": "y", "parameters": {"classification": 2}}]}
        output = self.infer("scores", body)["outputs"][0]
        self.assertEqual((output["datatype"], output["shape"]), ("BYTES", [2, 2]))
        self.assertEqual(output["data"], ["0.700000:1:dog", "0.200000:2:bird", "3.000000:0:cat", "2.000000:2:bird"])

    def test_errors(self):
        infer = "/v2/models/simple/infer"
        self.error("POST", "/v2/models/simpel/infer", pair(), 404, "no model 'simpel'", "'simple'?")
        self.error("GET", "/v2/models/simple/versions/3", None, 404, "no version '3'")
        self.error("POST", infer, {"inputs": []}, 400, "INPUT0")
        self.error("POST", infer, {}, 400, '"inputs"')
        self.error("POST", infer, "{", 400, "not JSON")
        self.error("POST", infer, pair(COUNT[:15]), 400, "16 elements", "15")
        self.error("POST", infer, pair(COUNT + [1]), 400, "more values")
        self.error("POST", infer, pair([1.5] * 16), 400, "INPUT0")
        self.error("POST", infer, pair([2**31] * 16), 400, "does not fit")
        self.error("POST", infer, pair(datatype="INT23"), 400, "no datatype 'INT23'")
        self.error("POST", infer, pair(datatype="FP32"), 400, "INPUT0")
        self.error("POST", infer, pair(datatype="FP16"), 400, "only as binary data")
        self.error("POST", infer, {**pair(), "outputs": [{"name": "OUTPUT7"}]}, 400, "OUTPUT7")
        big = {"inputs": [tensor(f"INPUT{i}", "INT32", [9, 16], [0] * 144) for i in (0, 1)]}
        self.error("POST", infer, big, 400, "at most 8")
        huge = {"inputs": [tensor("INPUT0", "INT32", [1 << 40, 1 << 20], [0])]}
        self.error("POST", infer, huge, 400, "more elements")
        shared = tensor("INPUT0", "INT32", [1, 16], COUNT)
        shared["parameters"] = {"shared_memory_region": "r"}
        self.error("POST", infer, {"inputs": [shared]}, 501, "shared memory")
        self.error("POST", "/v2/systemsharedmemory/region/r/register", {}, 501, "shared memory")
        self.error("GET", "/v2/cudasharedmemory/status", None, 501, "shared memory")
        self.assertEqual(self.server.ask("POST", infer, b"x", {"Content-Encoding": "br"}).status, 415)
        self.assertEqual(self.server.ask("POST", infer, b"x", {"Content-Encoding": "gzip"}).status, 400)
        self.assertEqual(self.server.ask("POST", infer, b"{}", {"Inference-Header-Content-Length": "9"}).status, 400)
        self.assertEqual(self.server.ask("DELETE", infer).status, 405)

    def test_repository(self):
        def states():
            return {(m["name"], m["version"]): m["state"] for m in self.server.json("POST", "/v2/repository/index", {})}

        write(self.repository / "late/1/model.onnx", times(3))
        write(self.repository / "broken/1/model.onnx", b"broken")
        wait_until(lambda: ("late", "1") in states() and ("broken", "1") in states())
        body = {"inputs": [tensor("x", "FP32", [1, 2], [1, 2])]}
        self.assertEqual(self.infer("late", body)["outputs"][0]["data"], [3, 6])
        self.assertEqual(states()["late", "1"], "READY")
        self.infer("broken", body, 500)
        reason = [m["reason"] for m in self.server.json("POST", "/v2/repository/index", {}) if m["name"] == "broken"]
        self.assertNotEqual(reason, [""])
        self.server.json("POST", "/v2/repository/models/late/unload", {})
        self.error("POST", "/v2/models/late/infer", body, 404, "unloaded")
        self.assertEqual(self.server.ask("GET", "/v2/models/late/ready").status, 404)
        ready = {m["name"] for m in self.server.json("POST", "/v2/repository/index", {"ready": True})}
        self.assertNotIn("late", ready)
        self.server.json("POST", "/v2/repository/models/late/load")
        self.assertEqual(self.infer("late", body)["outputs"][0]["data"], [3, 6])
        override = {"parameters": {"config": json.dumps({"max_batch_size": 2, "dynamic_batching": {}})}}
        self.server.json("POST", "/v2/repository/models/late/load", override)
        self.assertEqual(self.server.json("GET", "/v2/models/late/config")["max_batch_size"], 2)
        self.error("POST", "/v2/repository/models/late/load", {"parameters": {"file:1/model.onnx": "AAAA"}}, 501, "only from the repository")
        self.error("POST", "/v2/repository/models/nothing/load", {}, 404, "no model 'nothing'")

    def test_new_versions_take_over_without_a_failed_request(self):
        write(self.repository / "hot/1/model.onnx", times(1))
        body = {"inputs": [tensor("x", "FP32", [1, 2], [1, 2])]}
        wait_until(lambda: self.server.ask("GET", "/v2/models/hot/ready").status == 200)
        stop, wrong, seen = threading.Event(), [], set()

        def client():
            while not stop.is_set():
                got = self.server.ask("POST", "/v2/models/hot/infer", body)
                answer = got.json()
                factor = answer["outputs"][0]["data"][0] if got.status == 200 else None
                seen.add(factor)
                # The version that is named is the one that answered.
                if factor not in (1, 2, 3) or (factor == 3) != (answer["model_version"] == "2"):
                    wrong.append(answer)

        threads = [threading.Thread(target=client) for _ in range(16)]
        for thread in threads:
            thread.start()
        write(self.repository / "hot/1/model.onnx", times(2))
        wait_until(lambda: 2 in seen)
        write(self.repository / "hot/2/model.onnx", times(3))
        wait_until(lambda: 3 in seen)
        for _ in range(3):
            self.server.json("POST", "/v2/repository/models/hot/load")
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_many_clients_share_runs_and_statistics_say_so(self):
        def client(value):
            for _ in range(20):
                answer = self.infer("scores", {"inputs": [tensor("x", "FP32", [1, 3], [value] * 3)]})
                if answer["outputs"][0]["data"] != [value] * 3:
                    wrong.append(answer)

        before = self.server.json("GET", "/v2/models/scores/stats")["model_stats"][0]
        wrong = []
        threads = [threading.Thread(target=client, args=(i,)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        after = self.server.json("GET", "/v2/models/scores/stats")["model_stats"][0]
        self.assertEqual(after["inference_count"] - before["inference_count"], 320)
        self.assertLess(after["execution_count"] - before["execution_count"], 320)
        self.assertEqual(after["inference_stats"]["success"]["count"] - before["inference_stats"]["success"]["count"], 320)
        self.assertEqual(self.server.metric("nv_inference_count", model="scores", version="1"), after["inference_count"])

    def test_settings(self):
        self.assertEqual(self.server.json("GET", "/v2/trace/setting")["trace_level"], ["OFF"])
        self.assertIn("log_info", self.server.json("GET", "/v2/logging"))
        self.error("POST", "/v2/logging", {"log_info": False}, 400, "--log-format")


class Projects(unittest.TestCase):
    """What sdx.yml says is done by the server."""

    PROJECT = """
name: flaky
version: 2.1.0
model: ./model.onnx
inputs: {x: {shape: [n, 3]}}
outputs: {y: {softmax: true, top_k: 2, labels: [cat, dog, bird]}}
runtime: {providers: [fault, cpu], provider_options: {fault: {at: 5, count: 3}}, provider_retry: 0}
serving: {max_batch_size: 4, max_queue_delay_ms: 1}
"""

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(scratch())
        write_repository(folder / "all")
        write(folder / "flaky/model.onnx", (folder / "all/scores/1/model.onnx").read_bytes())
        write(folder / "flaky/sdx.yml", cls.PROJECT)
        write(folder / "gray/model.onnx", gray_pixels())
        write(folder / "gray/sdx.yml", "name: gray\nmodel: ./model.onnx\npreprocessing: {normalize: none, color: gray}\n")
        cls.server = Server(SDX, folder / "flaky", folder / "gray", environment={"SDX_TEST_PROVIDER": "1"})

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)

    def test_a_provider_that_fails_costs_no_answer(self):
        def client(number):
            for i in range(20):
                value = number * 100 + i
                got = self.server.ask("POST", "/v2/models/flaky/infer", {"inputs": [tensor("x", "FP32", [1, 3], [value] * 3)]})
                if got.status != 200 or got.json()["outputs"][0]["data"] != [value] * 3:
                    wrong.append((got.status, got.body))

        wrong = []
        threads = [threading.Thread(target=client, args=(n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        # The provider did fail, and was dropped: another one answers now.
        self.assertEqual(self.server.json("GET", "/info/flaky")["provider"], "cpu")

    def test_predict(self):
        answer = self.server.json("POST", "/predict/flaky", {"x": [[1, 3, 2]]})
        self.assertAlmostEqual(sum(answer["y"][0]), 1, 5)
        self.assertEqual([(t["label"], t["class"]) for t in answer["top"]], [("dog", 1), ("bird", 2)])
        self.assertEqual(self.server.json("POST", "/predict?model=flaky", {"inputs": {"x": [1, 3, 2]}}), answer)
        self.assertIn("name one of them", self.server.json("POST", "/predict", {"x": [[1, 3, 2]]}, 400)["error"])
        self.assertIn("no input 'z'", self.server.json("POST", "/predict/flaky", {"z": [1]}, 400)["error"])
        self.server.json("POST", "/predict/nothing", {}, 404)

    def test_pictures_in_forms_and_alone(self):
        picture = b"P5 2 1 255\n" + bytes([10, 200])
        form = (b'--XX\r\nContent-Disposition: form-data; name="x"; filename="a.pgm"\r\nContent-Type: image/x-portable-graymap\r\n\r\n'
                + picture + b"\r\n--XX--\r\n")
        for body, kind in ((form, "multipart/form-data; boundary=XX"), (picture, "image/x-portable-graymap")):
            answer = self.server.ask("POST", "/predict/gray", body, {"Content-Type": kind})
            self.assertEqual(answer.status, 200, answer.body)
            self.assertEqual(answer.json(), {"y": [[[[10, 200]]]]})
        self.assertEqual(self.server.ask("POST", "/predict/gray", b"no picture", {"Content-Type": "image/png"}).status, 400)

    def test_info(self):
        info = self.server.json("GET", "/info/flaky")
        self.assertEqual((info["name"], info["version"]), ("flaky", "2.1.0"))
        self.assertEqual(info["inputs"], [{"name": "x", "type": "float32", "shape": [-1, 3], "required": True}])
        self.assertIn(info["provider"], ("fault", "cpu"))


@unittest.skipIf(find_models() is None, "SDX_TEST_MODELS names no folder")
class Language(unittest.TestCase):
    """Triton's generate extension."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server(SDX, f"story={find_models() / 'llm_stories260k' / 'genai_fp32'}")

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)

    def test_text_whole_and_piece_by_piece(self):
        request = {"id": "7", "text_input": "Once upon a time", "parameters": {"temperature": 0, "max_tokens": 24}}
        whole = self.server.json("POST", "/v2/models/story/generate", request)
        self.assertEqual(self.server.json("POST", "/v2/models/story/generate", {**request, "temperature": None, "stop": None}), whole)
        self.assertEqual((whole["id"], whole["model_name"], whole["model_version"]), ("7", "story", "1"))
        self.assertGreater(len(whole["text_output"]), 20)
        self.assertEqual(self.server.json("POST", "/v2/models/story/versions/1/generate", request), whole)
        answer = self.server.ask("POST", "/v2/models/story/generate_stream", request)
        self.assertEqual(answer.headers["Content-Type"], "text/event-stream; charset=utf-8")
        events = [json.loads(line[6:]) for line in answer.body.decode().split("\n\n") if line]
        self.assertGreater(len(events), 3)
        self.assertEqual("".join(e["text_output"] for e in events), whole["text_output"])

    def test_mistakes(self):
        for body, part in (({}, "text_input"), ({"text_input": "a", "parameters": {"top_q": 1}}, "top_q"),
                           ({"text_input": "a", "max_tokens": "many"}, "max_tokens"), ({"text_input": 5}, "string"),
                           ({"text_input": "a", "temperature": -1}, "temperature")):
            self.assertIn(part, self.server.json("POST", "/v2/models/story/generate", body, 400)["error"])
        self.assertIn("language model", self.server.json("POST", "/v2/models/story/infer", pair(), 400)["error"])
        self.server.json("POST", "/v2/models/nothing/generate_stream", {"text_input": "a"}, 404)
        self.assertEqual(self.server.json("GET", "/v2/models/story")["platform"], "sardonyx_language")


if __name__ == "__main__":
    unittest.main()
