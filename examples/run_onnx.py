"""A policy is exported as an ONNX file, and the file opens the fridge.

    pip install 'rearrange[onnx]' onnxruntime
    python examples/run_onnx.py
"""

import json

import numpy as np
import onnxruntime

import rearrange
from rearrange.command_line.cli import main

main("export skill=open_fridge checkpoint=pretrained out=open_fridge.onnx".split())

env, pretrained = rearrange.load_pretrained("open_fridge")  # or what gives the same observations
session = onnxruntime.InferenceSession("open_fridge.onnx")
state, previous = (np.zeros(each.shape, np.float32) for each in session.get_inputs()[-2:])
told = json.loads(session.get_modelmeta().custom_metadata_map["outputs"])  # the file says what it gives
print(told[0]["meaning"])

observation, info = env.reset(seed=0)
over = False
while not over:
    seen = {each.name: observation[each.name][None] for each in session.get_inputs()[:-2]}
    action, state, previous = session.run(None, {**seen, "state": state, "previous": previous})
    observation, reward, terminated, truncated, info = env.step(action[0])
    over = terminated or truncated
print(f"success: {info['success']}")
