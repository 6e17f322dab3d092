#!/usr/bin/env bash
# torch.optim.Adam(fused=True) on a CPU: silently another step where parameter, gradient and moments do not lie alike in memory.
#
# What one expects: fused=True does what the other implementations do, up to rounding; strides are a matter of speed.
# What happens: the fused step on a CPU walks through the memory of parameter, gradient and both moments side by side. If a weight is stored
#   transposed and its gradient, which somebody set, is contiguous, or if moments that were stored contiguously (as safetensors does) are loaded
#   for it, each number is updated with another number's gradient or moments. Nothing is said. With fused=False all is right. Gradients of autograd
#   lie as their parameter does, so a plain training is not affected until its optimizer is loaded from such a file.
# Version: torch 2.13.0 (CPU)
# Source: https://pypi.org/project/torch/2.13.0/, torch/optim/adam.py, _fused_adam; aten/src/ATen/native/cpu/FusedAdamKernel.cpp
# Date: 2026-11-29
# Seen (largest difference from fused=False after six steps of at most 0.1):
#     weights contiguous:                              0.0000
#     weights transposed, gradients of autograd:       0.0000
#     weights transposed, gradients set contiguous:    0.9235
#     weights transposed, moments loaded contiguous:   0.3443

set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
cat > "$folder/steps.py" <<'PYTHON'
import torch


def trained(fused, transposed=False, set_gradients=False, load_at=None):
    torch.manual_seed(0)
    weight = torch.randn(4, 3)
    weight = torch.nn.Parameter(weight.t().contiguous().t() if transposed else weight)
    adam = torch.optim.Adam([weight], lr=0.1, fused=fused)
    noise = torch.Generator().manual_seed(1)
    for step in range(6):
        if step == load_at:
            state = adam.state_dict()
            state["state"] = {0: {k: v.clone(memory_format=torch.contiguous_format) for k, v in state["state"][0].items()}}
            adam = torch.optim.Adam([weight], lr=0.1, fused=fused)
            adam.load_state_dict(state)
        wanted = torch.randn(4, 3, generator=noise)
        adam.zero_grad()
        if set_gradients:
            weight.grad = wanted
        else:
            (weight * wanted).sum().backward()
        adam.step()
    return weight.detach()


right, changed = trained(fused=False), False
for words, how, is_wrong in (("weights contiguous", {}, False), ("weights transposed, gradients of autograd", dict(transposed=True), False),
                             ("weights transposed, gradients set contiguous", dict(transposed=True, set_gradients=True), True),
                             ("weights transposed, moments loaded contiguous", dict(transposed=True, load_at=3), True)):
    assert torch.allclose(trained(fused=False, **how), right)
    away = (trained(fused=True, **how) - right).abs().max().item()
    print(f"{words + ':':48} {away:.4f}")
    changed |= (away > 1e-4) != is_wrong
raise SystemExit(changed)
PYTHON
"$folder/env/bin/python" "$folder/steps.py"
