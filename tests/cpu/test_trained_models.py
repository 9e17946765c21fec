"""Ten steps of a padded batch by attn_implementation="smscope": eager attention's losses, and torch's fused kernels."""

import pytest
import torch

from attention.integrations import transformers as smscope
from attention.kernels.torch.composed import gradient, slow
from tests.tiny_models import made, padded

pytestmark = [pytest.mark.usefixtures("host_machine"), pytest.mark.filterwarnings("error::attention.FallbackWarning")]


def ten_losses(implementation, inputs, name):
    torch.manual_seed(0)
    model = made(name).train()
    model.set_attn_implementation(implementation)
    seen = inputs["attention_mask"]
    # Nor the first token behind padding, which a row of padding predicts: what that attends to is nobody's promise.
    labels = inputs["input_ids"].masked_fill((seen * seen.roll(1, -1)) == 0, -100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = model(**inputs, labels=labels, use_cache=False).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_a_padded_batch_is_trained_without_the_slow_path(name, side, monkeypatch):
    smscope.register()
    expected = ten_losses("eager", padded(side), name)
    for module, function in ((gradient, "backward"), (slow, "forward")):
        monkeypatch.setattr(module, function, lambda *_, **__: pytest.fail("the slow path"))
    found = ten_losses("smscope", padded(side), name)
    assert found == pytest.approx(expected, rel=1e-4) and found[-1] < found[0]
