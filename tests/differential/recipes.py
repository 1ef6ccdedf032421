"""The list that recipes join: functions that draw one operator (or a pattern of several) with fitting inputs."""

RECIPES = {}  # name -> (function, weight)


def recipe(*names, weight=1.0):
    def register(function):
        for name in names or (function.__name__,):
            RECIPES[name] = ((lambda d, f=function, n=name: f(d, n)) if names else function, weight)
        return function

    return register
