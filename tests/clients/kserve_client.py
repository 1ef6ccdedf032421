"""kserve_client.py HTTP_ADDRESS GRPC_ADDRESS: KServe's published client (PyPI: kserve) against a server with serving.py's models. Exit code
77 where the package is missing."""

import asyncio
import sys

try:
    from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig
except ImportError as missing:
    print(f"{missing}: KServe's client is left out")
    sys.exit(77)

UP, ONES = list(range(16)), [1] * 16


def request():
    inputs = [InferInput(name, [1, 16], "INT32", values) for name, values in (("INPUT0", UP), ("INPUT1", ONES))]
    return InferRequest(model_name="simple", infer_inputs=inputs)


def check(answer):
    sums, differences = (output.as_numpy().flatten().tolist() for output in answer.outputs)
    if sums != [a + b for a, b in zip(UP, ONES)] or differences != [a - b for a, b in zip(UP, ONES)]:
        sys.exit(f"KServe's client: {sums} {differences}")


async def main(http, grpc):
    url = f"http://{http}"
    rest = InferenceRESTClient(RESTConfig(protocol="v2", retries=1))
    if not (await rest.is_server_live(url) and await rest.is_server_ready(url) and await rest.is_model_ready(url, "simple")):
        sys.exit("KServe's client: not ready")
    check(await rest.infer(url, request(), model_name="simple"))
    client = InferenceGRPCClient(url=grpc)
    if not (await client.is_server_live() and await client.is_model_ready("simple")):
        sys.exit("KServe's client: not ready over gRPC")
    check(await client.infer(request()))
    await client.close()
    print("kserve: all as expected")


asyncio.run(main(*sys.argv[1:3]))
