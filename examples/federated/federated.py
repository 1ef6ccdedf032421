"""Several clients train one model without showing their data: Flower sends parameters around, Sardonyx trains.

    pip install "flwr[simulation]" numpy sardonyx
    python federated.py ARTIFACTS CHECKPOINT OUT [CLIENTS [ROUNDS]]

ARTIFACTS is a folder that `sdx artifacts` wrote for a classifier of float32[N,width], CHECKPOINT the state to begin with. OUT becomes the
checkpoint of the model that all trained. Here all clients are processes of this machine (Flower's simulation); `client_app` and
`server_app` run unchanged on machines of their own. A client's samples never leave load_samples().
"""

import os
import sys
from collections import OrderedDict

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from sardonyx.training.api import CheckpointState, Trainer

BATCH = 16


def setting(context, name, default=None):
    """From `flwr run`'s configuration; in the simulation from the environment."""
    return context.run_config.get(name, os.environ.get("FEDERATED_" + name.upper(), default))


def load_samples(client, width, classes):
    """What only this client has: here points around each class's middle, many of one class and few of the others."""
    random = np.random.default_rng(client + 1)
    middles = np.random.default_rng(0).standard_normal((classes, width)).astype(np.float32)
    count = 96 + 32 * client
    labels = np.where(random.random(count) < 0.6, client % classes, random.integers(0, classes, count))
    return (middles[labels] + 0.5 * random.standard_normal((count, width))).astype(np.float32), labels.astype(np.int64)


def to_record(state):
    """The trained parameters, by name."""
    return ArrayRecord(array_dict=OrderedDict((name, Array(p.data)) for name, p in state.parameters if p.requires_grad))


def from_record(record, state):
    for name, array in record.items():
        state.parameters[name] = array.numpy()


def sizes(state):
    """Width and classes of the samples, from the first and the last trained matrix."""
    matrices = [p.data.shape for _, p in state.parameters if p.requires_grad and p.data.ndim == 2]
    return max(s[1] for s in matrices), min(s[0] for s in matrices)


def train(artifacts, state, samples, rate):
    """One pass over the client's samples. Returns the mean loss."""
    x, labels = samples
    trainer = Trainer(artifacts, state, "sgd", learning_rate=rate, threads=1)
    losses = [trainer.train_step([x[at:at + BATCH], labels[at:at + BATCH]]) for at in range(0, len(x), BATCH)]
    return float(np.mean(losses))


def evaluate(artifacts, state, samples):
    loss = Trainer(artifacts, state, "sgd", threads=1).eval_step(list(samples))
    return float(loss[0] if isinstance(loss, tuple) else loss)


client_app = ClientApp()


def received(message, context):
    state = CheckpointState.load_checkpoint(setting(context, "checkpoint"))
    from_record(message.content["arrays"], state)
    return state, load_samples(int(context.node_config["partition-id"]), *sizes(state))


@client_app.train()
def train_here(message: Message, context: Context) -> Message:
    state, samples = received(message, context)
    loss = train(setting(context, "artifacts"), state, samples, float(setting(context, "rate", 0.1)))
    metrics = MetricRecord({"loss": loss, "num-examples": len(samples[0])})
    return Message(RecordDict({"arrays": to_record(state), "metrics": metrics}), reply_to=message)


@client_app.evaluate()
def evaluate_here(message: Message, context: Context) -> Message:
    state, samples = received(message, context)
    metrics = MetricRecord({"loss": evaluate(setting(context, "artifacts"), state, samples), "num-examples": len(samples[0])})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)


server_app = ServerApp()


@server_app.main()
def serve(grid: Grid, context: Context) -> None:
    state = CheckpointState.load_checkpoint(setting(context, "checkpoint"))
    clients = int(setting(context, "clients", 3))
    strategy = FedAvg(min_train_nodes=clients, min_evaluate_nodes=clients, min_available_nodes=clients)
    rounds = int(setting(context, "rounds", 3))
    result = strategy.start(grid, to_record(state), num_rounds=rounds)
    from_record(result.arrays, state)
    state.properties["rounds"] = rounds
    for number, metrics in sorted(result.evaluate_metrics_clientapp.items()):
        print(f"round {number}: loss {metrics['loss']:.4f}", flush=True)
        state.properties["loss"] = float(metrics["loss"])
    CheckpointState.save_checkpoint(state, setting(context, "out"))


def main():
    from flwr.simulation import run_simulation

    for name, value in zip(("ARTIFACTS", "CHECKPOINT", "OUT", "CLIENTS", "ROUNDS"), [*map(os.path.abspath, sys.argv[1:4]), *sys.argv[4:]]):
        os.environ["FEDERATED_" + name] = value
    run_simulation(server_app, client_app, num_supernodes=int(os.environ.get("FEDERATED_CLIENTS", 3)),
                   backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}})


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main()
