"""sdx pull against a hub on this machine: pull_test.py SDX

A server that serves ranges and redirects, and misbehaves on purpose. SDX_PULL_KILLS=100 kills that many pulls (default 15).
"""

import hashlib
import http.server
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / part) for part in ("cli", "support")]
import tiny_models as tiny  # noqa: E402
from scratch import scratch  # noqa: E402

SDX = str(Path(sys.argv[1]).resolve())


def weighty(location, count):
    """C = A + W with W in another file."""
    entry = tiny.data(13, tiny.data(1, "location") + tiny.data(2, location))
    weights = tiny.number(1, count) + tiny.number(2, tiny.FLOAT) + tiny.data(8, "W") + entry + tiny.number(14, 1)
    return tiny.model([tiny.node("Add", ["A", "W"], ["C"])], [tiny.value_info("A", tiny.FLOAT, [count])],
                      [tiny.value_info("C", tiny.FLOAT, [count])], [weights])


COUNT = 1 << 18
WEIGHTS = random.Random(1).randbytes(4 * COUNT)
MODEL = weighty("w.bin", COUNT)
SMALL = tiny.model([tiny.node("Identity", ["A"], ["C"])], [tiny.value_info("A", tiny.FLOAT, [2])], [tiny.value_info("C", tiny.FLOAT, [2])])
FILES = {"/m.onnx": MODEL, "/w.bin": WEIGHTS, "/small.onnx": SMALL, "/page.onnx": b"<!DOCTYPE html><html></html>",
         "/escape.onnx": weighty("../w.bin", COUNT)}
TALKER = tiny.gguf(["a", "b", "c", "<end>"])
OTHER = tiny.gguf(["a", "b", "<end>"])
QUANTISED = {"model-Q8_0.gguf": OTHER, "model-UD-Q4_K_M.gguf": OTHER, "model-Q4_K_M.gguf": TALKER, "mmproj-model-f16.gguf": OTHER, "README.md": b"x",
             "big/model-Q5_0-00001-of-00002.gguf": TALKER, "big/model-Q5_0-00002-of-00002.gguf": OTHER}
LICENCES = [b"Do as you like.\n", b"And that.\n"]
REPO = {"onnx/model.onnx": MODEL, "onnx/w.bin": WEIGHTS, "config.json": b"{}\n", "tokenizer.json": b"{}"}




def safetensors(name):
    """One tensor of two float32."""
    header = json.dumps({name: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(8)


WHOLE = safetensors("embed")
SHARDS = {"model-00001-of-00002.safetensors": safetensors("a"), "model-00002-of-00002.safetensors": safetensors("b")}
LISTING = json.dumps({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}).encode()
FOLDER = {"config.json": b'{"model_type":"llama"}', "tokenizer.json": b"{}", "chat_template.jinja": b"{{ messages }}", "README.md": b"x", "pytorch_model.bin": b"x"}
REPOSITORIES = {
    "chat": {**FOLDER, "model.safetensors": WHOLE, "fp16/model.safetensors": SMALL},
    "large": {**FOLDER, **SHARDS, "model.safetensors.index.json": LISTING},
    "half": {**FOLDER, "model-00001-of-00002.safetensors": WHOLE, "model.safetensors.index.json": LISTING},
    "damaged": {**FOLDER, "model.safetensors": WHOLE[:-1]},
    "vectors": {**FOLDER, "model.safetensors": WHOLE, "modules.json": b"[]", "1_Pooling/config.json": b"{}", "2_Dense/config.json": b"{}",
                "2_Dense/model.safetensors": WHOLE, "2_Dense/pytorch_model.bin": b"x", "other/config.json": b"{}"},
    "torch": FOLDER,
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen = []
    failures = {}  # path -> statuses still to give
    pace = 0  # seconds between 64 KiB
    cut = {}  # path -> bytes after which the connection ends, once each

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass

    def body(self, content, **headers):
        etag = '"' + hashlib.md5(content).hexdigest() + '"'
        headers = {"ETag": etag, **headers}
        if self.headers.get("If-None-Match") == etag:
            return self.reply(304, **headers)
        first = 0
        wanted = self.headers.get("Range")
        if wanted and self.headers.get("If-Range") in (None, etag):
            first = int(wanted[6:].rstrip("-"))
            if first >= len(content):
                return self.reply(416, **headers, Content_Range=f"bytes */{len(content)}")
        self.send_response(206 if first else 200)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - first))
        self.end_headers()
        end = Handler.cut.pop(self.path, len(content))
        try:
            for at in range(first, end, 65536):
                self.wfile.write(content[at:min(at + 65536, end)])
                self.wfile.flush()
                time.sleep(Handler.pace)
            if end < len(content):
                self.close_connection = True
                self.connection.close()
        except OSError:
            pass

    def do_GET(self):
        path = self.path.split("?")[0]
        Handler.seen.append((path, dict(self.headers)))
        if Handler.failures.get(path):
            return self.reply(Handler.failures[path].pop(0))
        if path == "/loop.onnx":
            return self.reply(302, Location="/loop.onnx")
        if path == "/moved.onnx":
            return self.reply(302, Location="/small.onnx")
        if path == "/elsewhere.onnx":
            return self.reply(302, Location="file:///etc/passwd")
        if path == "/silent.onnx":
            return time.sleep(3)
        if path == "/endless.onnx":
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(bytes(65536))
            except OSError:
                return None
        if path == "/headers.onnx":
            try:
                self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                while True:
                    self.wfile.write(b"X-A: " + b"a" * 1000 + b"\r\n")
            except OSError:
                return None
        if path in FILES:
            return self.body(FILES[path])
        if path.startswith("/v2/"):
            return self.registry(path)
        if path.startswith("/api/models/org/") and self.headers.get("Authorization") != "Bearer secret":
            return self.reply(401)
        if path == "/api/models/org/name/revision/main":
            files = [{"rfilename": n, "size": len(c), "lfs": {"sha256": hashlib.sha256(c).hexdigest(), "size": len(c)}}
                     for n, c in REPO.items()]
            return self.reply(200, json.dumps({"sha": "abc123", "siblings": files + [{"rfilename": "../../evil.json"}]}).encode())
        if path == "/api/models/org/quants/revision/main":
            files = [{"rfilename": n, "size": len(c), "lfs": {"sha256": hashlib.sha256(c).hexdigest(), "size": len(c)}} for n, c in QUANTISED.items()]
            return self.reply(200, json.dumps({"sha": "q1", "siblings": files}).encode())
        if path.startswith("/org/quants/resolve/q1/") and path[23:] in QUANTISED:
            return self.body(QUANTISED[path[23:]])
        if path.startswith("/api/models/org/") and path.split("/")[4] in REPOSITORIES:
            files = REPOSITORIES[path.split("/")[4]]
            return self.reply(200, json.dumps({"sha": "s1", "siblings": [{"rfilename": n, "size": len(c)} for n, c in files.items()]}).encode())
        if path.startswith("/org/") and path.split("/")[2] in REPOSITORIES:
            files, name = REPOSITORIES[path.split("/")[2]], "/".join(path.split("/")[5:])
            return self.body(files[name]) if name in files else self.reply(404)
        if path == "/api/models/org/wrong/revision/main":
            files = [{"rfilename": "model.onnx", "lfs": {"sha256": "0" * 64, "size": len(SMALL)}}]
            return self.reply(200, json.dumps({"sha": "d", "siblings": files}).encode())
        if path == "/org/wrong/resolve/d/model.onnx":
            return self.body(SMALL)
        if path.startswith("/org/name/resolve/abc123/"):
            return self.reply(302, Location=f"http://localhost:{self.server.server_port}/store/{path[25:]}")
        if path.startswith("/store/") and path[7:] in REPO:
            return self.body(REPO[path[7:]])
        return self.reply(404)


    def registry(self, path):
        """Models as Ollama's registry keeps them: a manifest, and layers by their digests."""
        digest = lambda content: "sha256:" + hashlib.sha256(content).hexdigest()
        layer = lambda kind, content: {"mediaType": "application/vnd.ollama.image." + kind, "digest": digest(content), "size": len(content)}
        layers = {"0.6b": [layer("license", LICENCES[0]), layer("model", TALKER), layer("template", b"{{ .Prompt }}"), layer("license", LICENCES[1])],
                  "latest": [layer("model", OTHER)], "adapter": [layer("adapter", OTHER)], "wrong": [{**layer("model", OTHER), "digest": digest(b"")}],
                  "odd": [{"mediaType": "application/vnd.ollama.image.model", "digest": "md5:1", "size": 3}]}
        for name in ("library/qwen3", "team/qwen3"):
            if path.startswith(f"/v2/{name}/manifests/") and path.rsplit("/", 1)[1] in layers:
                return self.reply(200, json.dumps({"schemaVersion": 2, "layers": layers[path.rsplit("/", 1)[1]]}).encode())
            for content in (*LICENCES, TALKER, OTHER):
                if path == f"/v2/{name}/blobs/{digest(content)}":
                    return self.body(content)
            if path == f"/v2/{name}/blobs/{digest(b'')}":
                return self.body(OTHER)
        return self.reply(404)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


class Pull(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(("127.0.0.1", 0), Handler)
        cls.base = f"http://127.0.0.1:{cls.server.server_port}"
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()

    def setUp(self):
        self.home = self.enterContext(scratch())
        self.models_folder = self.home / ".sdx" / "models"
        self.env = {**os.environ, "HOME": str(self.home), "SDX_HUB_ENDPOINT": self.base, "HF_TOKEN": "secret", "no_proxy": "*",
                    "SDX_REGISTRY_ENDPOINT": self.base}
        Handler.seen, Handler.failures, Handler.pace, Handler.cut = [], {}, 0, {}

    def models(self, *words, code=0, says=""):
        r = subprocess.run([SDX, "models", *words], env=self.env, cwd=self.home, capture_output=True, text=True, timeout=120)
        self.assertEqual(r.returncode, code, r.stdout + r.stderr)
        self.assertIn(says, r.stderr)
        return json.loads(r.stdout) if code == 0 and "--json" in words else r.stdout

    def pull(self, *words, code=0, says=""):
        r = subprocess.run([SDX, "pull", *words], env=self.env, cwd=self.home, capture_output=True, text=True, timeout=120)
        self.assertEqual(r.returncode, code, r.stdout + r.stderr)
        self.assertIn(says, r.stderr)
        return json.loads(r.stdout) if code == 0 and "--json" in words else r.stdout

    def whole(self, name, files):
        for file, content in files.items():
            self.assertEqual((self.models_folder / name / file).read_bytes(), content)

    def test_address_with_external_data_and_again(self):
        got = self.pull(f"{self.base}/m.onnx", "--json")
        self.assertEqual(got["received"], len(MODEL) + len(WEIGHTS))
        self.whole("m", {"m.onnx": MODEL, "w.bin": WEIGHTS})
        self.assertEqual([f["sha256"] for f in got["files"]], [hashlib.sha256(c).hexdigest() for c in (MODEL, WEIGHTS)])
        again = self.pull(f"{self.base}/m.onnx", "--json")
        self.assertEqual((again["received"], [f["origin"] for f in again["files"]]), (0, ["unchanged"] * 2))
        (self.models_folder / "m" / "w.bin").write_bytes(bytes(len(WEIGHTS)))
        self.pull(f"{self.base}/m.onnx")
        self.whole("m", {"w.bin": WEIGHTS})

    def test_offline(self):
        url = f"{self.base}/small.onnx"
        self.pull(url, "--offline", code=1, says="is not available")
        self.pull(url)
        Handler.seen = []
        self.pull(url, "--offline")
        self.assertEqual(Handler.seen, [])

    def test_hub(self):
        got = self.pull("hf://org/name", "--json")
        self.assertEqual(got["revision"], "abc123")
        self.whole("name", {"model.onnx": MODEL, "w.bin": WEIGHTS, "config.json": b"{}\n", "tokenizer.json": b"{}"})
        self.assertFalse(any("evil" in p.name for p in self.home.rglob("*")))
        stored = [h for p, h in Handler.seen if p.startswith("/store/")]
        self.assertTrue(stored and all("Authorization" not in h for h in stored))  # the token stays with the hub
        self.pull("hf://org/name/onnx/model.onnx", "--name", "bare", "--only-model", "--endpoint", self.base, "--revision", "main")
        self.assertEqual(sorted(p.name for p in (self.models_folder / "bare").glob("[a-z]*")), ["model.onnx", "w.bin"])
        self.pull("hf://org/name/onnx/modle.onnx", code=2, says="hf://org/name/onnx/model.onnx")
        self.pull("hf://org/wrong", code=1, says="wrong checksum")
        self.assertFalse((self.models_folder / "wrong").exists())
        self.env["HF_TOKEN"] = ""
        self.pull("hf://org/name", "--name", "other", code=1, says="HF_TOKEN")

    def test_registry(self):
        got = self.pull("qwen3:0.6b", "--json")
        self.assertEqual((got["name"], got["revision"]), ("qwen3:0.6b", "sha256:" + hashlib.sha256(TALKER).hexdigest()))
        self.whole("qwen3-0.6b", {"model.gguf": TALKER, "LICENSE": LICENCES[0], "LICENSE-2": LICENCES[1]})
        self.assertEqual(self.pull("qwen3:0.6b", "--json")["received"], 0)  # the digests are the same
        self.pull("qwen3:0.6b", "--offline")
        self.models("pull", "qwen3")
        self.models("pull", "qwen3:latest", "--only-model")
        host = self.base.removeprefix("http://")
        self.models("pull", f"{host}/team/qwen3:0.6b", "--name", "ours", "--register", says="entered ours into models.yaml")
        self.assertEqual(sorted(p.name for p in self.models_folder.iterdir()), ["ours", "qwen3", "qwen3-0.6b"])
        self.assertEqual([m["name"] for m in self.models("ls", "--json")["pulled"]], ["ours", "qwen3", "qwen3:0.6b"])
        self.assertIn("qwen3:0.6b", self.models("ls", "--names").splitlines())
        shown = self.models("show", "qwen3:0.6b", "--json")
        self.assertEqual([f["name"] for f in shown["files"]], ["model.gguf", "LICENSE", "LICENSE-2"])
        self.assertEqual(shown["bytes"], len(TALKER) + sum(map(len, LICENCES)))
        self.assertIn("architecture llama", self.models("show", "qwen3:0.6b"))
        for name in ("qwen3:0.6b", "qwen3-0.6b", "ours"):
            said = subprocess.run([SDX, "generate", name, "-p", "ab", "--greedy", "--max-tokens", "2", "--json"], env=self.env, cwd=self.home,
                                  capture_output=True, text=True)
            self.assertEqual(said.returncode, 0, said.stderr)
        self.models("rm", "qwen3:0.6", code=1, says="did you mean")
        self.models("rm", "qwen3:0.6b", says="removed qwen3:0.6b")
        self.assertFalse((self.models_folder / "qwen3-0.6b").exists())
        plan = self.pull("qwen3:0.6b", "--dry-run", "--json")
        self.assertEqual([(f["name"], f["bytes"]) for f in plan["files"]][:1], [("model.gguf", len(TALKER))])

    def test_registry_that_misbehaves(self):
        self.pull("nobody:1b", code=1, says="404")
        self.pull("qwen3:adapter", code=2, says="it has the layers adapter")
        self.pull("qwen3:odd", code=1, says="SHA-256")
        self.pull("qwen3:wrong", code=1, says="wrong checksum")
        self.pull("qwen3:latest", "--sha256", "0" * 64, code=1, says="was expected")
        self.env["SDX_REGISTRY_ENDPOINT"] = self.base + "/m.onnx"
        self.pull("qwen3:0.6b", code=1, says="404")
        self.assertFalse((self.models_folder / "qwen3-wrong").exists())
        self.pull("qwen3:latest", "--endpoint", self.base)

    def test_quantisations(self):
        got = self.pull("hf.co/org/quants", "--json")
        self.assertEqual((got["name"], [f["name"] for f in got["files"]], got["revision"]), ("hf.co/org/quants", ["model-Q4_K_M.gguf"], "q1"))
        self.whole("hf.co-org-quants", {"model-Q4_K_M.gguf": TALKER})
        self.models("pull", "hf.co/org/quants:q8_0")
        self.whole("hf.co-org-quants-q8_0", {"model-Q8_0.gguf": OTHER})
        self.pull("huggingface.co/org/quants:UD-Q4_K_M", "--name", "dynamic")
        self.whole("dynamic", {"model-UD-Q4_K_M.gguf": OTHER})
        self.pull("hf://org/quants/model-Q8_0.gguf", "--name", "file")
        self.whole("file", {"model-Q8_0.gguf": OTHER})
        # Parts that do not fit each other are no model, but all of them come.
        self.pull("hf.co/org/quants:Q5_0", "--no-check")
        self.assertEqual(sorted(p.name for p in (self.models_folder / "hf.co-org-quants-Q5_0").glob("*.gguf")),
                         ["model-Q5_0-00001-of-00002.gguf", "model-Q5_0-00002-of-00002.gguf"])
        self.pull("hf.co/org/quants:Q2_K", code=2, says="model-Q4_K_M.gguf")
        self.assertIn("hf.co/org/quants:q8_0", self.models("ls", "--names").splitlines())
        self.models("rm", "hf.co/org/quants:q8_0")

    def names(self, model):
        folder = self.models_folder / model
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.name != ".sdx-pull.json")

    def test_safetensors(self):
        """Folders of transformers and sentence-transformers, with all that belongs to them and nothing else."""
        common = ["chat_template.jinja", "config.json"]
        got = self.pull("hf://org/chat", "--json")
        self.assertEqual(got["model"], str(self.models_folder / "chat" / "model.safetensors"))
        self.assertEqual(self.names("chat"), [*common, "model.safetensors", "tokenizer.json"])
        self.assertIn("llama", self.models("show", "chat"))
        self.pull("hf://org/large")
        self.assertEqual(self.names("large"), [*common, *SHARDS, "model.safetensors.index.json", "tokenizer.json"])
        self.pull("hf://org/chat/model.safetensors", "--name", "named", "--only-model")
        self.assertEqual(self.names("named"), ["model.safetensors"])
        self.pull("hf://org/vectors")
        self.assertEqual(self.names("vectors"), ["1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors", *common,
                                                 "model.safetensors", "modules.json", "tokenizer.json"])
        plan = self.pull("hf://org/large", "--name", "planned", "--dry-run", "--json")
        self.assertEqual(sorted(f["name"] for f in plan["files"]), [*common, *SHARDS, "model.safetensors.index.json", "tokenizer.json"])
        self.pull("hf://org/half", code=1, says="model-00002-of-00002.safetensors")
        self.pull("hf://org/damaged", code=1, says="model.safetensors")
        self.pull("hf://org/torch", code=2, says="no model.safetensors")
        self.assertEqual([n for n in ("half", "damaged", "torch") if (self.models_folder / n).exists()], [])

    def test_gguf_from_an_address(self):
        FILES["/talker.gguf"] = TALKER
        FILES["/broken.gguf"] = TALKER[:-7]
        self.pull(f"{self.base}/talker.gguf")
        self.whole("talker", {"talker.gguf": TALKER})
        self.pull(f"{self.base}/broken.gguf", code=1)
        self.assertFalse((self.models_folder / "broken").exists())
        (self.home / "own").mkdir()
        (self.home / "own" / "x.gguf").write_bytes(TALKER)
        self.pull("own")
        self.whole("own", {"x.gguf": TALKER})

    def test_local(self):
        (self.home / "m.onnx").write_bytes(MODEL)
        self.pull("m.onnx", code=1, says="w.bin")
        (self.home / "w.bin").write_bytes(WEIGHTS)
        self.pull("m.onnx", "--to", "here")
        self.assertEqual((self.home / "here" / "w.bin").read_bytes(), WEIGHTS)
        (self.models_folder / "m").mkdir(parents=True)
        self.pull("m.onnx", code=2, says="--force")
        self.pull("m.onnx", "--force")
        self.whole("m", {"m.onnx": MODEL, "w.bin": WEIGHTS})

    def test_dry_run_of_an_address(self):
        url = f"{self.base}/m.onnx"
        text = self.pull(url, "--dry-run", says="external data is fetched too")
        self.assertIn(f"would make '{self.models_folder / 'm'}'", text)
        self.assertIn(f"m.onnx  from {url}", text)
        plan = self.pull(url, "--dry-run", "--json")
        self.assertEqual((plan["dry_run"], plan["received"], plan["model"]), (True, 0, str(self.models_folder / "m" / "m.onnx")))
        self.assertEqual([(f["name"], f["bytes"], f["origin"], f["from"]) for f in plan["files"]], [("m.onnx", len(MODEL), "download", url)])
        self.assertFalse(self.models_folder.exists())
        self.assertNotIn("/w.bin", [p for p, _ in Handler.seen])
        self.assertIsNone(self.pull(f"{self.base}/endless.onnx", "--dry-run", "--json")["files"][0]["bytes"])
        self.pull(f"{self.base}/none.onnx", "--dry-run", code=1, says="404")
        self.pull(url, "--dry-run", "--max-size", "10", code=2, says="--max-size")
        (self.home / "file").touch()
        self.pull(url, "--dry-run", "--to", "file/m", code=1, says="is not a folder")
        self.pull(url)
        self.assertIn("unchanged", self.pull(url, "--dry-run"))

    def test_dry_run_of_a_hub(self):
        plan = self.pull("hf://org/name", "--dry-run", "--json")
        self.assertEqual(plan["revision"], "abc123")
        self.assertEqual({f["name"]: f["bytes"] for f in plan["files"]},
                         {"model.onnx": len(MODEL), "config.json": 3, "tokenizer.json": 2})
        self.assertEqual([p for p, _ in Handler.seen], ["/api/models/org/name/revision/main"])
        self.assertFalse(self.models_folder.exists())
        self.pull("hf://org/name")
        again = self.pull("hf://org/name", "--dry-run", "--json")
        self.assertEqual({f["origin"] for f in again["files"]}, {"unchanged"})

    def test_dry_run_of_a_path(self):
        (self.home / "m.onnx").write_bytes(MODEL)
        self.pull("m.onnx", "--dry-run", code=1, says="w.bin")
        (self.home / "w.bin").write_bytes(WEIGHTS)
        plan = self.pull("m.onnx", "--dry-run", "--json", "--register", says="would enter m into models.yaml")
        self.assertEqual([(f["name"], f["bytes"], f["origin"]) for f in plan["files"]],
                         [("m.onnx", len(MODEL), "copy"), ("w.bin", len(WEIGHTS), "copy")])
        self.assertEqual(sorted(p.name for p in self.home.iterdir()), ["m.onnx", "w.bin"])
        (self.models_folder / "m").mkdir(parents=True)
        self.pull("m.onnx", "--dry-run", code=2, says="--force")

    def test_checksum(self):
        good = hashlib.sha256(SMALL).hexdigest()
        self.pull(f"{self.base}/small.onnx", "--sha256", "0" * 64, code=1, says="wrong checksum")
        self.assertFalse((self.models_folder / "small").exists())
        self.pull(f"{self.base}/small.onnx#sha256={good}")

    def test_passing_failures(self):
        Handler.failures["/small.onnx"] = [503, 429]
        self.pull(f"{self.base}/small.onnx", says="another attempt")
        Handler.failures["/small.onnx"] = [500, 500]
        self.pull(f"{self.base}/small.onnx", "--name", "b", "--retries", "1", code=1, says="status 500")

    def test_broken_connection_continues(self):
        Handler.cut["/w.bin"] = 300000
        got = self.pull(f"{self.base}/m.onnx", "--json", says="another attempt")
        self.whole("m", {"m.onnx": MODEL, "w.bin": WEIGHTS})
        self.assertEqual(got["received"], len(MODEL) + len(WEIGHTS))  # nothing came twice
        self.assertTrue(any(p == "/w.bin" and "Range" in h for p, h in Handler.seen))

    def test_misbehaving_servers(self):
        for file, words, says in [("loop", [], "redirects"), ("elsewhere", [], "cannot be used"), ("page", [], "web page"),
                                  ("escape", [], "refused"), ("none", [], "404"), ("headers", [], "header"),
                                  ("silent", ["--timeout", "300ms", "--retries", "0"], "gave up")]:
            self.pull(f"{self.base}/{file}.onnx", *words, code=1, says=says)
            self.assertFalse((self.models_folder / file).exists())
        self.pull(f"{self.base}/endless.onnx", "--max-size", "1MB", code=2, says="--max-size")
        self.pull(f"{self.base}/page.onnx", "--no-check", code=1, says="web page")
        self.pull(f"{self.base}/moved.onnx")
        self.pull("http://127.0.0.1:1/x.onnx", "--retries", "0", code=1, says="cannot connect")
        # Unencrypted only on this machine, which a name that begins like its address is not.
        self.pull("127.0.0.1:1/team/m:x", "--retries", "0", code=1, says=" http://127.0.0.1:1/")
        self.pull("127.name.example:1/team/m:x", "--retries", "0", code=1, says=" https://127.name.example:1/")

    def test_wrong_use(self):
        for words in (["ftp://x/y"], ["hf://"], ["hf://a/../b"], ["x.onnx", "--name", "../x"], ["x", "--sha256", "12"], [],
                      ["x", "--retries", "-1"], ["x", "--timeout", "0"], ["http://x:99999/"], ["http://u:p@x/"], ["x", "--revision", "1"]):
            self.pull(*words, code=2)

    def test_kills(self):
        Handler.pace = 0.005
        url, chance = f"{self.base}/m.onnx", random.Random(7)
        for _ in range(int(os.environ.get("SDX_PULL_KILLS", "15"))):
            child = subprocess.Popen([SDX, "pull", url], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(chance.uniform(0, 0.16))
            child.send_signal(signal.SIGKILL)
            child.wait()
            if (self.models_folder / "m").exists():
                self.whole("m", {"m.onnx": MODEL, "w.bin": WEIGHTS})
                subprocess.run(["rm", "-r", str(self.models_folder / "m")], check=True)
        Handler.pace = 0
        self.pull(url)
        self.whole("m", {"m.onnx": MODEL, "w.bin": WEIGHTS})
        self.assertEqual([p.name for p in self.models_folder.iterdir()], ["m"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
