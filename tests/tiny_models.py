"""Tiny random models of Transformers, one for each feature that attention has, and calls of them."""

from collections.abc import Callable
from typing import Any

import torch
import transformers as hf

VOCABULARY = 64
PAD = 0
LENGTH = 20
WINDOW = 6
PACKED = (9, 4, 7)  # tokens of sequences in one row
SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
TOKENS = {"vocab_size": VOCABULARY, "pad_token_id": PAD, "bos_token_id": 1, "eos_token_id": None}
COMMON = SIZES | TOKENS | {"max_position_embeddings": 128, "initializer_range": 0.3}
GROUPED = COMMON | {"num_key_value_heads": 2, "head_dim": 8}
TWO_KINDS = {"sliding_window": WINDOW, "layer_types": ["sliding_attention", "full_attention"]}


def _llama() -> Any:
    return hf.LlamaForCausalLM(hf.LlamaConfig(**GROUPED))


def _qwen3() -> Any:
    return hf.Qwen3ForCausalLM(hf.Qwen3Config(**GROUPED))


def _mistral() -> Any:
    return hf.MistralForCausalLM(hf.MistralConfig(**GROUPED, sliding_window=WINDOW))


def _gemma2() -> Any:
    capped = {"attn_logit_softcapping": 2.0, "query_pre_attn_scalar": 8}
    return hf.Gemma2ForCausalLM(hf.Gemma2Config(**GROUPED, **TWO_KINDS, **capped))


def _gemma3() -> Any:
    return hf.Gemma3ForCausalLM(hf.Gemma3TextConfig(**GROUPED, **TWO_KINDS, query_pre_attn_scalar=8))


def _gpt_oss() -> Any:
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2}
    model = hf.GptOssForCausalLM(hf.GptOssConfig(**GROUPED, **TWO_KINDS, **experts))
    for layer in model.model.layers:
        torch.nn.init.normal_(layer.self_attn.sinks, mean=1.0)
    return model


def _gpt2() -> Any:
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128, "initializer_range": 0.3}
    tokens = {"bos_token_id": 1, "eos_token_id": None, "pad_token_id": PAD}
    dropout = {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
    return hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=VOCABULARY, **sizes, **tokens, **dropout))


def _deepseek_v3() -> Any:
    latent = {"q_lora_rank": None, "kv_lora_rank": 16, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 6}
    experts = {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1}
    sizes = COMMON | {"num_key_value_heads": 4, "moe_intermediate_size": 16, "first_k_dense_replace": 1}
    return hf.DeepseekV3ForCausalLM(hf.DeepseekV3Config(**sizes, **latent, **experts))


def _bert() -> Any:
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return hf.BertForMaskedLM(hf.BertConfig(**COMMON, **dropout))


def _t5() -> Any:
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "dropout_rate": 0.0}
    tokens = {"pad_token_id": PAD, "eos_token_id": None, "decoder_start_token_id": 1}
    return hf.T5ForConditionalGeneration(hf.T5Config(vocab_size=VOCABULARY, **sizes, **tokens))


MADE = (_llama, _qwen3, _mistral, _gemma2, _gemma3, _gpt_oss, _gpt2, _deepseek_v3)
DECODERS: dict[str, Callable[[], Any]] = {each.__name__[1:]: each for each in MADE}
ENCODERS: dict[str, Callable[[], Any]] = {"bert": _bert, "t5": _t5}


def made(name: str, device: str = "cpu", dtype: torch.dtype = torch.float32) -> Any:
    """A tiny model, the same in every process, which computes attention eagerly."""
    torch.manual_seed(0)
    model = (DECODERS | ENCODERS)[name]().to(device, dtype).eval()
    model.set_attn_implementation("eager")
    return model


def tokens(rows: int, length: int = LENGTH, device: str = "cpu") -> torch.Tensor:
    """Random tokens (rows, length), none of them padding."""
    return torch.randint(2, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(1)).to(device)


def padded(side: str, device: str = "cpu") -> dict[str, torch.Tensor]:
    """Two rows, the second with seven tokens of padding on one side."""
    ids, seen = tokens(2, device=device), torch.ones(2, LENGTH, dtype=torch.long, device=device)
    hidden = slice(0, 7) if side == "left" else slice(-7, None)
    seen[1, hidden] = 0
    return {"input_ids": ids.masked_fill(seen == 0, PAD), "attention_mask": seen}


def packed(device: str = "cpu") -> dict[str, Any]:
    """Three sequences in one row, which their positions tell apart, where there is no cache."""
    positions = torch.cat([torch.arange(length) for length in PACKED])[None].to(device)
    return {"input_ids": tokens(1, sum(PACKED), device), "position_ids": positions, "use_cache": False}


def one_by_one(model: Any, device: str = "cpu") -> torch.Tensor:
    """The logits of these sequences, each alone."""
    parts = tokens(1, sum(PACKED), device).split(PACKED, dim=1)
    return torch.cat([model(part).logits for part in parts], dim=1)


def second_chunk(model: Any, device: str = "cpu") -> torch.Tensor:
    """Logits of tokens that follow others in a growing cache, several at a time."""
    ids = tokens(2, device=device)
    first = model(ids[:, :13], use_cache=True)
    logits: torch.Tensor = model(ids[:, 13:], past_key_values=first.past_key_values, use_cache=True).logits
    return logits


def greedy(model: Any, inputs: dict[str, torch.Tensor], **options: Any) -> list[list[int]]:
    """The next 8 tokens of each row."""
    options = {"max_new_tokens": 8, "do_sample": False, "disable_compile": True} | options
    found: list[list[int]] = model.generate(**inputs, **options).tolist()
    return found
