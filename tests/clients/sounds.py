"""Sounds that are the same every time."""

import numpy as np


def speech(seconds, rate=16000):
    """Something like a voice: bursts of a buzz through three resonances, with pauses of faint noise."""
    dice = np.random.default_rng(7)
    t = np.arange(int(seconds * rate)) / rate
    pitch = 120 + 25 * np.sin(2 * np.pi * 0.7 * t)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    harmonics = np.arange(1, 30)
    envelope = sum(np.exp(-(((harmonics[:, None] * pitch - f) / w) ** 2)) for f, w in ((600, 150), (1200, 200), (2500, 300)))
    voice = (np.sin(harmonics[:, None] * phase) * envelope).sum(axis=0)
    syllables = np.clip(np.sin(2 * np.pi * 3.1 * t), 0, 1) * (np.sin(2 * np.pi * 0.31 * t) > -0.2)
    sound = voice * syllables + 0.01 * dice.standard_normal(len(t))
    return (0.6 * sound / np.abs(sound).max()).astype(np.float32)
