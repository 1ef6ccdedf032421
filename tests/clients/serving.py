"""serving.py SDX: Triton's published Python client (PyPI: tritonclient) and KServe's against `sdx serve`, over HTTP and gRPC, with models that
behave like the `simple` models of Triton's examples. Exit code 77 where the packages are missing: tools/clients_env.sh installs them."""

import json
import queue
import subprocess
import sys
import threading
from pathlib import Path

from serving_packages import PROJECT, SKIPPED, run_again_with_packages

try:
    import numpy as np
    import tritonclient.grpc as triton_grpc
    import tritonclient.http as triton_http
    from tritonclient.utils import InferenceServerException
except ImportError as missing:
    run_again_with_packages(missing)

sys.path[:0] = [str(PROJECT / "tests" / part) for part in ("serve", "support")]
from inference_models import times, write, write_repository  # noqa: E402
from scratch import scratch  # noqa: E402
from server import Server, wait_until  # noqa: E402

UP, ONES = np.arange(16, dtype=np.int32).reshape(1, 16), np.ones((1, 16), np.int32)


def expect(condition, what):
    if not condition:
        raise SystemExit(f"wrong: {what}")


def expect_error(call, *parts):
    try:
        call()
    except InferenceServerException as error:
        for part in parts:
            expect(part in error.message(), f"'{part}' is not in: {error.message()}")
        return
    raise SystemExit(f"nothing was refused that should have been: {parts}")


def inputs_of(module, **arrays):
    out = []
    for name, (array, datatype) in arrays.items():
        one = module.InferInput(name, list(array.shape), datatype)
        one.set_data_from_numpy(array)
        out.append(one)
    return out


def pair(module, a=UP, b=ONES, datatype="INT32"):
    return inputs_of(module, INPUT0=(a, datatype), INPUT1=(b, datatype))


def check_sums(result, a=UP, b=ONES):
    expect((result.as_numpy("OUTPUT0") == a + b).all(), result.as_numpy("OUTPUT0"))
    expect((result.as_numpy("OUTPUT1") == a - b).all(), result.as_numpy("OUTPUT1"))


def both(client, module):
    """What both transports have in common: the calls of Triton's examples."""
    expect(client.is_server_live() and client.is_server_ready() and client.is_model_ready("simple"), "health")
    expect(not client.is_model_ready("nothing"), "a model that there is not is ready")
    wanted = [module.InferRequestedOutput("OUTPUT0"), module.InferRequestedOutput("OUTPUT1")]
    check_sums(client.infer("simple", pair(module), outputs=wanted, request_id="7"))
    result = client.infer("simple", pair(module))
    check_sums(result)
    check_sums(client.infer("simple", pair(module), model_version="1", timeout=60_000_000))
    expect_error(lambda: client.infer("wrong_model_name", pair(module)), "Request for unknown model")
    expect_error(lambda: client.infer("simple", pair(module)[:1]), "INPUT1")
    expect_error(lambda: client.infer("simple", pair(module, UP.astype(np.float32), ONES.astype(np.float32), "FP32")), "INPUT0")
    small = [x.astype(np.int8) for x in (UP, ONES)]
    check_sums(client.infer("simple_int8", pair(module, *small, "INT8")), *small)
    texts = [np.array([[str(v).encode() for v in x[0]]], dtype=np.object_) for x in (UP, ONES)]
    result = client.infer("simple_string", pair(module, *texts, "BYTES"))
    expect([int(v) for v in result.as_numpy("OUTPUT0")[0]] == [int(v) for v in (UP + ONES)[0]], result.as_numpy("OUTPUT0"))
    odd = np.array([[b"", b"\x00\xff\xfe", "日本".encode()]], dtype=np.object_)
    result = client.infer("simple_identity", inputs_of(module, INPUT0=(odd, "BYTES")))
    expect((result.as_numpy("OUTPUT0") == odd).all(), result.as_numpy("OUTPUT0"))
    scores = np.array([[0.1, 0.7, 0.2]], np.float32)
    result = client.infer("scores", inputs_of(module, x=(scores, "FP32")), outputs=[module.InferRequestedOutput("y", class_count=2)])
    expect(list(result.as_numpy("y").flatten()) == [b"0.700000:1:dog", b"0.200000:2:bird"], result.as_numpy("y"))
    for version in ("1", "2"):
        values = np.array([[1.5, -2]], np.float32)
        result = client.infer("versions", inputs_of(module, x=(values, "FP32")), model_version=version)
        expect((result.as_numpy("y") == values * int(version)).all(), f"version {version}")


def control(client, repository, name):
    write(repository / name / "1" / "model.onnx", times(4))
    states = lambda: {m["name"]: m.get("state") for m in client.get_model_repository_index()}
    wait_until(lambda: name in states())
    client.load_model(name)
    expect(client.is_model_ready(name) and states()[name] == "READY", "a loaded model is not ready")
    client.load_model(name, config=json.dumps({"max_batch_size": 4, "dynamic_batching": {}}))
    client.unload_model(name)
    expect(states()[name] == "UNAVAILABLE", states())
    client.load_model(name)
    expect_error(lambda: client.load_model("nothing"), "Request for unknown model")


def over_http(server, repository):
    with triton_http.InferenceServerClient(server.address, concurrency=4) as client:
        both(client, triton_http)
        expect(client.get_server_metadata()["name"] == "sardonyx", "metadata")
        metadata, config = client.get_model_metadata("simple"), client.get_model_config("simple")
        expect(metadata["inputs"][0]["datatype"] == "INT32" and config["max_batch_size"] == 8, config)
        for binary in (True, False):
            inputs = pair(triton_http)
            inputs[0].set_data_from_numpy(UP, binary_data=binary)
            outputs = [triton_http.InferRequestedOutput("OUTPUT0", binary_data=not binary), triton_http.InferRequestedOutput("OUTPUT1")]
            check_sums(client.infer("simple", inputs, outputs=outputs))
        halves = np.array([[1, 2, 3]], np.float16)
        expect_error(lambda: client.infer("scores", inputs_of(triton_http, x=(halves, "FP16"))), "x")
        waiting = [client.async_infer("simple", pair(triton_http)) for _ in range(16)]
        for one in waiting:
            check_sums(one.get_result())
        expect(len(client.get_inference_statistics("simple")["model_stats"]) == 1, "statistics")
        control(client, repository, "by_http")
        expect_error(lambda: client.register_system_shared_memory("r", "/r", 64), "shared memory")
        client.get_trace_settings()
        client.get_log_settings()


def over_grpc(server, repository):
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
        both(client, triton_grpc)
        expect(client.get_server_metadata().name == "sardonyx", "metadata")
        expect(client.get_model_metadata("simple").inputs[0].datatype == "INT32", "metadata")
        expect(client.get_model_config("simple").config.max_batch_size == 8, "config")
        expect(len(client.get_inference_statistics("simple").model_stats) == 1, "statistics")
        answers = queue.Queue()
        for _ in range(16):
            client.async_infer("simple", pair(triton_grpc), callback=lambda result, error: answers.put((result, error)))
        for _ in range(16):
            result, error = answers.get(timeout=60)
            expect(error is None, error)
            check_sums(result)
        client.start_stream(callback=lambda result, error: answers.put((result, error)))
        for i in range(8):
            client.async_stream_infer("simple" if i != 3 else "nothing", pair(triton_grpc, UP + i, ONES), request_id=str(i))
        for i in range(8):
            result, error = answers.get(timeout=60)
            expect((error is not None) == (i == 3), f"request {i} of the stream: {error}")
            if error is None:
                check_sums(result, UP + i, ONES)
        client.stop_stream()
        # A call that its client gives up ends the run.
        values = np.ones((1, 2), np.float32)
        expect_error(lambda: client.infer("slow", inputs_of(triton_grpc, x=(values, "FP32")), client_timeout=0.2), "eadline")
        wait_until(lambda: client.get_inference_statistics("slow").model_stats[0].inference_stats.fail.count == 1)
        expect_error(lambda: client.register_system_shared_memory("r", "/r", 64), "")
        large = np.zeros((1, 17 << 20), np.float32)  # 68 MiB
        expect_error(lambda: client.infer("slow", inputs_of(triton_grpc, x=(large, "FP32"))), "larger than max")
        missing = [triton_grpc.InferRequestedOutput("OUTPUT7")]
        expect_error(lambda: client.infer("simple", pair(triton_grpc), outputs=missing), "no output 'OUTPUT7'")
        typed_contents(server)

        class Control:  # the same names as HTTP's
            @staticmethod
            def get_model_repository_index():
                return [{"name": m.name, "state": m.state} for m in client.get_model_repository_index().models]

            load_model, unload_model, is_model_ready = client.load_model, client.unload_model, client.is_model_ready

        control(Control, repository, "by_grpc")


def typed_contents(server):
    """Messages with typed contents instead of raw bytes, as gRPC's own stubs send them; and the standard health check."""
    import grpc
    from tritonclient.grpc import service_pb2, service_pb2_grpc

    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        request = service_pb2.ModelInferRequest(model_name="simple", id="x")
        for name, values in (("INPUT0", UP), ("INPUT1", ONES)):
            one = request.inputs.add(name=name, datatype="INT32", shape=[1, 16])
            one.contents.int_contents[:] = values[0].tolist()
        answer = stub.ModelInfer(request)
        expect(answer.id == "x" and list(np.frombuffer(answer.raw_output_contents[0], np.int32)) == list((UP + ONES)[0]), answer)
        request.inputs[0].contents.int_contents.append(1)
        try:
            stub.ModelInfer(request)
            raise SystemExit("17 values for 16 were taken")
        except grpc.RpcError as error:
            expect(error.code() == grpc.StatusCode.INVALID_ARGUMENT, error)
        check = channel.unary_unary("/grpc.health.v1.Health/Check", request_serializer=lambda x: x, response_deserializer=lambda x: x)
        expect(check(b"") == b"\x08\x01", "the standard health check does not say SERVING")


def with_keys(server):
    """The same keys on both transports; health needs none."""
    right, wrong = ({"authorization": f"Bearer {key}"} for key in ("secret-of-alice", "secret-of-bob"))
    for module, address in ((triton_http, server.address), (triton_grpc, f"127.0.0.1:{server.grpc_port}")):
        with module.InferenceServerClient(address) as client:
            expect(client.is_server_live(), "health needs a key")
            check_sums(client.infer("simple", pair(module), headers=dict(right)))  # HTTP's client adds to it
            for headers in (None, dict(wrong)):
                expect_error(lambda: client.infer("simple", pair(module), headers=headers), "key")


def many_at_once(server):
    """Answers of 16 clients on both transports are their own."""
    wrong = []

    def work(module, address, number):
        with module.InferenceServerClient(address) as client:
            for i in range(40):
                values = np.full((1, 3), number * 1000 + i, np.float32)
                got = client.infer("scores", inputs_of(module, x=(values, "FP32"))).as_numpy("y")
                if not (got == values).all():
                    wrong.append((number, i, got))

    threads = [threading.Thread(target=work, args=(m, a, n))
               for n in range(8) for m, a in ((triton_http, server.address), (triton_grpc, f"127.0.0.1:{server.grpc_port}"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(not wrong, wrong[:3])


def kserve_client(server):
    """In a process of its own: both packages bring the protocol's messages, and Python takes them once."""
    script = Path(__file__).with_name("kserve_client.py")
    done = subprocess.run([sys.executable, "-B", script, server.address, f"127.0.0.1:{server.grpc_port}"], timeout=300)
    expect(done.returncode in (0, SKIPPED), f"KServe's client: exit code {done.returncode}")


def main():
    with scratch() as repository:
        write_repository(repository)
        write(repository / "slow/model.onnx", times(1))
        write(repository / "slow/sdx.yml", "name: slow\nmodel: ./model.onnx\n"
              "runtime: {providers: [fault], provider_options: {fault: {fault: hang, at: 2, hang_ms: 30000}}}\n")
        with Server(sys.argv[1], "--repository", repository, grpc=True, environment={"SDX_TEST_PROVIDER": "1"}) as server:
            over_http(server, repository)
            over_grpc(server, repository)
            many_at_once(server)
            kserve_client(server)
        keys = repository / ".keys"
        keys.write_text("secret-of-alice name=alice\n")
        with Server(sys.argv[1], "--repository", repository, "--api-keys", keys, grpc=True) as server:
            with_keys(server)
    print("tritonclient: all as expected")


if __name__ == "__main__":
    main()
