"""From a seed to a model."""

import os

import numpy as np
import ops_control
import ops_elementwise
import ops_microsoft
import ops_movement
import ops_nn
import ops_other
import ops_quant
import patterns
from draw import Draw, Skip
from recipes import RECIPES

MODULES = (ops_control, ops_elementwise, ops_microsoft, ops_movement, ops_nn, ops_other, ops_quant, patterns)
STRICT = os.environ.get("SDX_DIFFERENTIAL_STRICT")  # a recipe that fails is a mistake; else it is drawn again


def recipe_weights(only=None):
    """Names of recipes (all, or those of a list with commas) and how often each is drawn."""
    names = sorted(only.split(",") if only else RECIPES)
    weights = np.array([RECIPES[n][1] for n in names])
    return names, weights / weights.sum()


def draw_model(seed, names, weights, nodes, few_symbols=False):
    """The Draw of a seed, with its model; names and weights: of the recipes; few_symbols: declares few names for many sizes."""
    d = Draw(seed, few_symbols=few_symbols)
    wanted = 1 if d.chance(0.45) else d.int(2, nodes)
    steps = failures = 0
    while steps < wanted and failures < 200:
        name = names[int(d.rng.choice(len(names), p=weights))]
        before = (len(d.nodes), len(d.inputs), len(d.weights), len(d.pool), len(d.results), dict(d.feeds))
        try:
            RECIPES[name][0](d)
            steps += 1
        except (Skip, IndexError, ValueError, TypeError, AttributeError, ZeroDivisionError) as e:
            if not isinstance(e, Skip) and STRICT:
                raise
            failures += 1
            for items, n in zip((d.nodes, d.inputs, d.weights, d.pool, d.results), before):
                del items[n:]
            d.feeds = before[5]
    return d
