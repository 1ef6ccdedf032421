"""A registry of models on this machine, as Ollama's: manifests that name layers by their digests. It can be slow, and lose connections."""

import hashlib
import http.server
import json
import threading
import time


def digest(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


class Registry:
    """`models`: {"library/name": {"tag": content of a GGUF file}}. `pace`: seconds between 64 KiB."""

    def __init__(self, models):
        self.models, self.pace, self.seen, self.resumed, self.broken = models, 0, [], 0, 0
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                registry.seen.append(self.path)
                content = registry.answer(self.path)
                first = int(self.headers.get("Range", "bytes=0-")[6:].rstrip("-")) if content else 0
                self.send_response(404 if content is None else 206 if first else 200)
                body = b"" if content is None else content[first:]
                if content is not None:
                    self.send_header("ETag", f'"{digest(content)}"')
                if first:
                    registry.resumed += 1
                    self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                try:
                    for at in range(0, len(body), 65536):
                        self.wfile.write(body[at:at + 65536])
                        time.sleep(registry.pace)
                except OSError:
                    registry.broken += 1
                    self.close_connection = True

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path):
        for name, tags in self.models.items():
            for tag, content in tags.items():
                if path == f"/v2/{name}/manifests/{tag}":
                    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": digest(content), "size": len(content)}
                    return json.dumps({"schemaVersion": 2, "layers": [layer]}).encode()
                if path == f"/v2/{name}/blobs/{digest(content)}":
                    return content
        return None

    def close(self):
        self.server.shutdown()
        self.server.server_close()
