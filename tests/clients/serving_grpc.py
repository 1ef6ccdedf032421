"""serving_grpc.py SDX: gRPC's side of `sdx serve` by Triton's published client: texts of language models in pieces, keys that are looked at before
messages are, certificates that change under a server that runs. Exit code 77 without the packages: tools/clients_env.sh installs them."""

import json
import queue
import shutil
import signal
import subprocess
import sys
import time

from serving_packages import PROJECT, run_again_with_packages

try:
    import grpc
    import numpy as np
    import tritonclient.grpc as triton
    from tritonclient.grpc import service_pb2, service_pb2_grpc
except ImportError as missing:
    run_again_with_packages(missing)

sys.path[:0] = [str(PROJECT / "tests" / part) for part in ("serve", "support")]
from inference_models import times, write  # noqa: E402
from scratch import scratch  # noqa: E402
from server import Server, wait_until  # noqa: E402
from tiny_models import alphabet, gguf  # noqa: E402

PATIENCE = 120


def expect(condition, what):
    if not condition:
        raise SystemExit(f"wrong: {what}")


def texts(**values):
    """Inputs as clients of vLLM's and TensorRT-LLM's backends send them."""
    out = []
    for name, value in values.items():
        array, datatype = {str: lambda: (np.array([value.encode()], np.object_), "BYTES"), bool: lambda: (np.array([value]), "BOOL"),
                           int: lambda: (np.array([value], np.int32), "INT32"), float: lambda: (np.array([value], np.float32), "FP32"),
                           list: lambda: (np.array([w.encode() for w in value], np.object_), "BYTES")}[type(value)]()  # fmt: skip
        out.append(triton.InferInput(name, list(array.shape), datatype))
        out[-1].set_data_from_numpy(array)
    return out


class Talk:
    """One stream, and what comes back."""

    def __init__(self, client):
        self.client, self.answers = client, queue.Queue()
        client.start_stream(callback=lambda result, error: self.answers.put((result, error)))

    def ask(self, inputs, **more):
        """Texts up to the last answer; an error as it is."""
        self.client.async_stream_infer("letters", inputs, **more)
        out = []
        while True:
            result, error = self.answers.get(timeout=PATIENCE)
            if error is not None:
                return error.message()
            response = result.get_response()
            last = response.parameters["triton_final_response"].bool_param
            if response.outputs:
                out.append(result.as_numpy("text_output")[0].decode())
            if last:
                return out, response


def language(server):
    whole = server.json("POST", "/v2/models/letters/generate", {"text_input": "abc", "temperature": 0, "max_tokens": 40})["text_output"]
    expect(len(whole) == 40, whole)
    with triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
        config = client.get_model_config("letters").config
        expect(config.model_transaction_policy.decoupled and config.input[0].name == "text_input", config)
        talk = Talk(client)
        sampling = json.dumps({"temperature": 0, "max_tokens": 40})
        pieces, last = talk.ask(texts(text_input="abc", stream=True, sampling_parameters=sampling), request_id="7")
        expect("".join(pieces) == whole and len(pieces) > 10, pieces)
        expect(last.id == "7" and last.model_name == "letters" and len(last.outputs) == 1, last)
        pieces, last = talk.ask(texts(text_input="abc", stream=True, sampling_parameters=sampling), enable_empty_final_response=True)
        expect("".join(pieces) == whole and not last.outputs, last)
        # As TensorRT-LLM's clients do, and in one piece.
        tensors = texts(text_input="abc", max_tokens=40, temperature=0.0, stream=False, stop_words=[""], bad_words=[""], beam_width=1, length_penalty=1.0,
                        exclude_input_in_output=True)  # fmt: skip
        pieces, _ = talk.ask(tensors)
        expect(pieces == [whole], pieces)
        for wrong, part in ((texts(stream=True), "text_input"), (texts(text_input="a", top_q=1), "top_q"), (texts(text_input=5), "BYTES"),
                            (texts(text_input="a", sampling_parameters="5"), "JSON object"), (texts(text_input="a", bad_words=["b"]), "bad_words"),
                            (texts(text_input="a", stream=1), "BOOL"), (texts(text_input="a", temperature=-1.0), "temperature")):  # fmt: skip
            message = talk.ask(wrong)
            expect(isinstance(message, str) and part in message, (part, message))
        message = talk.ask(texts(text_input="a"), outputs=[triton.InferRequestedOutput("text")])
        expect("no output 'text'" in message, message)
        expect(talk.ask(texts(text_input="abc", sampling_parameters=sampling))[0] == [whole], "the stream does not go on behind errors")
        try:
            client.infer("letters", texts(text_input="abc"))
            expect(False, "ModelInfer answered for a language model")
        except triton.InferenceServerException as error:
            expect("ModelStreamInfer" in error.message(), error.message())
        client.stop_stream()
    leaving(server)


def leaving(server):
    """A client that goes ends its text."""
    before = server.metric("sdx_engine_cancelled_total")
    with triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
        talk = Talk(client)
        client.async_stream_infer("letters", texts(text_input="abc", stream=True, max_tokens=50_000, min_tokens=50_000))
        expect(talk.answers.get(timeout=PATIENCE)[1] is None, "no text")
        client.stop_stream(cancel_requests=True)
    wait_until(lambda: server.metric("sdx_engine_cancelled_total") == before + 1)
    wait_until(lambda: server.metric("sdx_engine_requests_running") == 0)


def certificate(folder, name):
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], check=True, capture_output=True)  # fmt: skip
    return cert, key


def live(server, cert):
    """A new connection that trusts `cert` alone."""
    with grpc.secure_channel(f"127.0.0.1:{server.grpc_port}", grpc.ssl_channel_credentials(cert.read_bytes())) as channel:
        try:
            return service_pb2_grpc.GRPCInferenceServiceStub(channel).ServerLive(service_pb2.ServerLiveRequest(), timeout=10).live
        except grpc.RpcError as error:
            expect(error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED), error)
            return False


def code_of(call, *arguments, **more):
    try:
        call(*arguments, **more)
        return grpc.StatusCode.OK
    except grpc.RpcError as error:
        return error.code()


def keys_first(channel):
    """A message that is no message tells what is looked at first."""
    infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer", request_serializer=bytes, response_deserializer=bytes)
    nonsense = b"\xff" * 100
    expect(code_of(infer, nonsense) == grpc.StatusCode.UNAUTHENTICATED, "a message was parsed before its key was looked at")
    expect(code_of(infer, nonsense, metadata=[("authorization", "Bearer wrong")]) == grpc.StatusCode.UNAUTHENTICATED, "wrong key")
    expect(code_of(infer, nonsense, metadata=[("authorization", "Bearer right")]) == grpc.StatusCode.INVALID_ARGUMENT, "nonsense was taken")
    stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
    expect(stub.ServerLive(service_pb2.ServerLiveRequest()).live, "health needs a key")
    check = channel.unary_unary("/grpc.health.v1.Health/Check", request_serializer=bytes, response_deserializer=bytes)
    expect(check(b"") == b"\x08\x01", "the standard health check needs a key")
    request = service_pb2.ModelInferRequest(model_name="m")
    request.inputs.add(name="x", datatype="FP32", shape=[1, 2]).contents.fp32_contents[:] = [1, 2]
    answer = stub.ModelInfer(request, metadata=[("authorization", "Bearer right")])
    expect(np.frombuffer(answer.raw_output_contents[0], np.float32).tolist() == [3, 6], answer)


def rates(server):
    """Every request of a stream counts, not the stream."""
    with triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
        answers = queue.Queue()
        client.start_stream(callback=lambda result, error: answers.put((result, error)), headers={"authorization": "Bearer slow"})
        for _ in range(3):
            value = triton.InferInput("x", [1, 2], "FP32")
            value.set_data_from_numpy(np.array([[1, 2]], np.float32))
            client.async_stream_infer("m", [value])
        got = [answers.get(timeout=PATIENCE)[1] for _ in range(3)]
        client.stop_stream()
    expect(got[:2] == [None, None] and got[2] is not None and "used up its requests" in got[2].message(), got)


def encrypted(sdx, folder):
    if not shutil.which("openssl"):
        print("no openssl: TLS is not tried")
        return
    cert, key = certificate(folder, "first")
    flags = ["--tls-cert", cert, "--tls-key", key, "--api-keys", folder / "keys"]
    with Server(sdx, f"m={folder / 'm.onnx'}", *flags, grpc=True) as server:
        first = folder / "first-copy.pem"
        shutil.copy(cert, first)
        expect(live(server, first), "no TLS")
        with grpc.secure_channel(f"127.0.0.1:{server.grpc_port}", grpc.ssl_channel_credentials(first.read_bytes())) as kept:
            keys_first(kept)
            # Larger than any message may be: with TLS the key is looked at before the first byte of it is read.
            infer = kept.unary_unary("/inference.GRPCInferenceService/ModelInfer", request_serializer=bytes, response_deserializer=bytes)
            expect(code_of(infer, bytes(65 << 20)) == grpc.StatusCode.UNAUTHENTICATED, "a message was read before its key was looked at")
            second, second_key = certificate(folder, "second")
            shutil.copy(second_key, key)
            shutil.copy(second, cert)
            server.signal(signal.SIGHUP)
            server.wait_for("certificate read again")
            expect(live(server, second), "the new certificate is not in use")
            expect(not live(server, first), "the old certificate is still in use")
            keys_first(kept)  # what is open stays
        cert.write_text("nonsense")
        server.signal(signal.SIGHUP)
        server.wait_for("certificate as before")
        expect(live(server, second), "a certificate that is none took over")


def main():
    begin = time.monotonic()
    with scratch() as folder:
        (folder / "letters.gguf").write_bytes(gguf([*alphabet(), "<end>"], 60_000))
        write(folder / "m.onnx", times(3))
        (folder / "keys").write_text("right name=alice\nslow name=bob rate=2\n")
        with Server(sys.argv[1], f"letters={folder / 'letters.gguf'}", grpc=True) as server:
            language(server)
        with Server(sys.argv[1], f"m={folder / 'm.onnx'}", "--api-keys", folder / "keys", grpc=True) as server:
            with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
                keys_first(channel)
            rates(server)
        encrypted(sys.argv[1], folder)
    print(f"gRPC: all as expected ({time.monotonic() - begin:.0f} s)")


if __name__ == "__main__":
    main()
