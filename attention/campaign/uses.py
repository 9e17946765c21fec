"""What attention is used for: models by kind of use, with the figures of their configurations and where these stand.

A source is a repository of huggingface.co, whose config.json has the figures unless another file is named. `words` are
those of attention.campaign.posed, for each kind of layer that a model has. A window of n tokens has n - 1 keys to the
left of a query. Scales are left out: they change no time.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """`head_dims`: D, or D/Dv. `queries` and `keys`: what a model is always given; no keys where they are the queries.

    `layers`: the words of each kind of its layers, one of which is drawn. `longest`: a language model's tokens.
    """

    name: str
    heads_q: int
    heads_kv: int
    head_dims: str
    source: str
    layers: tuple[str, ...] = ("",)
    queries: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()
    longest: int = 32768
    dtype: str = "bf16"
    decodes: bool = True


CAUSAL = ("causal",)
LANGUAGE = (
    Model("Llama 3.1 8B", 32, 8, "128", "meta-llama/Llama-3.1-8B", CAUSAL),
    Model("Llama 3.1 70B", 64, 8, "128", "meta-llama/Llama-3.1-70B", CAUSAL),
    Model("Llama 3.2 1B", 32, 8, "64", "meta-llama/Llama-3.2-1B", CAUSAL),
    Model("Qwen2.5 7B", 28, 4, "128", "Qwen/Qwen2.5-7B", CAUSAL),
    Model("Qwen3 8B", 32, 8, "128", "Qwen/Qwen3-8B", CAUSAL),
    Model("Qwen3 30B A3B", 32, 4, "128", "Qwen/Qwen3-30B-A3B", CAUSAL),
    Model("Mistral 7B v0.1", 32, 8, "128", "mistralai/Mistral-7B-v0.1", ("causal window=4095",)),
    Model("Gemma 2 9B", 16, 8, "256", "google/gemma-2-9b", ("causal softcap=50", "causal window=4095 softcap=50")),
    Model("Gemma 2 2B", 8, 4, "256", "google/gemma-2-2b", ("causal softcap=50", "causal window=4095 softcap=50")),
    Model("Gemma 3 4B", 8, 4, "256", "google/gemma-3-4b-it, text_config", ("causal", "causal window=1023")),
    Model("gpt-oss-20b", 64, 8, "64", "openai/gpt-oss-20b", ("causal sinks", "causal window=127 sinks")),
    Model("GPT-2", 12, 12, "64", "openai-community/gpt2", CAUSAL, longest=1024),
    Model("Phi-3 mini 4k", 32, 32, "96", "microsoft/Phi-3-mini-4k-instruct", ("causal window=2046",), longest=4096),
    # It decodes by other heads, of 576 and 512 (MLA's absorbed form), which no kernel here has.
    Model("DeepSeek V2 Lite", 16, 16, "192/128", "deepseek-ai/DeepSeek-V2-Lite", CAUSAL, decodes=False),
)

# Padded batches have a mask of keys; T5 adds a bias of positions to every score.
ENCODERS = (
    Model("BERT base", 12, 12, "64", "google-bert/bert-base-uncased", ("", "mask"), (128, 256, 384, 512)),
    Model("BERT large", 16, 16, "64", "google-bert/bert-large-uncased", ("", "mask"), (128, 384, 512)),
    Model("T5 base", 12, 12, "64", "google-t5/t5-base", ("bias",), (128, 512)),
    Model("T5 v1.1 XXL", 64, 64, "64", "google/t5-v1_1-xxl", ("bias",), (256, 512)),
    Model("Whisper large v3", 20, 20, "64", "openai/whisper-large-v3", queries=(1500,), dtype="f16"),
    Model("Whisper small", 12, 12, "64", "openai/whisper-small", queries=(1500,), dtype="f16"),
)

# Tokens: patches of the image at the size that the model is given, and one for the class where it has one.
VISION = (
    Model("ViT B/16", 12, 12, "64", "google/vit-base-patch16-224 and -384", queries=(197, 577)),
    Model("ViT L/16", 16, 16, "64", "google/vit-large-patch16-224 and -384", queries=(197, 577)),
    Model("CLIP ViT L/14", 16, 16, "64", "openai/clip-vit-large-patch14, vision_config", queries=(257,), dtype="f16"),
    Model("CLIP ViT L/14 336", 16, 16, "64", "openai/clip-vit-large-patch14-336, vision_config", queries=(577,)),
    Model("CLIP ViT H/14", 16, 16, "80", "laion/CLIP-ViT-H-14-laion2B-s32B-b79K, vision_config", queries=(257,)),
    Model("SigLIP SO400M/14 384", 16, 16, "72", "google/siglip-so400m-patch14-384, vision_config", queries=(729,)),
    Model("SigLIP 2 SO400M/16 512", 16, 16, "72", "google/siglip2-so400m-patch16-512", queries=(1024,)),
    Model("DINOv2 L", 16, 16, "64", "facebook/dinov2-large", queries=(257, 1370)),
    Model("DINOv2 g", 24, 24, "64", "facebook/dinov2-giant", queries=(257, 1370)),
)

# Tokens: latents by patches at 512 and 1024 pixels, with those of the text where both attend to both. Videos are dealt
# over GPUs by heads (Ulysses), as their repositories' scripts do it.
DIFFUSION = (
    Model("SD 1.5, 64x64", 8, 8, "40", "stable-diffusion-v1-5, unet/config.json", queries=(4096,), dtype="f16"),
    Model("SD 1.5, 32x32", 8, 8, "80", "stable-diffusion-v1-5, unet/config.json", queries=(1024,), dtype="f16"),
    Model("SD 1.5, 16x16", 8, 8, "160", "stable-diffusion-v1-5, unet/config.json", queries=(256,), dtype="f16"),
    Model("SDXL, 64x64", 10, 10, "64", "stable-diffusion-xl-base-1.0, unet/config.json", queries=(4096,), dtype="f16"),
    Model("SDXL, 32x32", 20, 20, "64", "stable-diffusion-xl-base-1.0, unet/config.json", queries=(1024,), dtype="f16"),
    Model("SD 3 medium", 24, 24, "64", "stable-diffusion-3-medium, transformer/config.json", queries=(1357, 4429)),
    Model("SD 3.5 large", 38, 38, "64", "stable-diffusion-3.5-large, transformer/config.json", queries=(1357, 4429)),
    Model("Flux.1 dev", 24, 24, "128", "black-forest-labs/FLUX.1-dev, transformer/config.json", queries=(1536, 4608)),
    Model("PixArt Sigma", 16, 16, "72", "PixArt-Sigma-XL-2-1024-MS, transformer/config.json", queries=(1024, 4096)),
    Model("DiT XL/2", 16, 16, "72", "facebook/DiT-XL-2-512, transformer/config.json", queries=(256, 1024)),
    Model("Wan 2.1 1.3B over 4 GPUs, 480p", 3, 3, "128", "Wan-AI/Wan2.1-T2V-1.3B", queries=(32760,)),
    Model("Wan 2.1 14B over 8 GPUs, 480p", 5, 5, "128", "Wan-AI/Wan2.1-T2V-14B", queries=(32760,)),
    Model("HunyuanVideo over 8 GPUs, 33 frames", 3, 3, "128", "hunyuanvideo-community, transformer", queries=(32656,)),
    Model("CogVideoX 2B", 30, 30, "64", "THUDM/CogVideoX-2b, transformer/config.json", queries=(17776,), dtype="f16"),
)

CROSS = (
    Model("SD 1.5, 64x64", 8, 8, "40", "stable-diffusion-v1-5, unet/config.json", ("",), (4096,), (77,), dtype="f16"),
    Model("SD 1.5, 32x32", 8, 8, "80", "stable-diffusion-v1-5, unet/config.json", ("",), (1024,), (77,), dtype="f16"),
    Model("SD 1.5, 16x16", 8, 8, "160", "stable-diffusion-v1-5, unet/config.json", ("",), (256,), (77,), dtype="f16"),
    Model("SDXL, 64x64", 10, 10, "64", "stable-diffusion-xl-base-1.0, unet", ("",), (4096,), (77,), dtype="f16"),
    Model("SDXL, 32x32", 20, 20, "64", "stable-diffusion-xl-base-1.0, unet", ("",), (1024,), (77,), dtype="f16"),
    Model("Kolors, 64x64", 10, 10, "64", "Kwai-Kolors/Kolors, unet/config.json", ("",), (4096,), (256,), dtype="f16"),
    Model("Kolors, 32x32", 20, 20, "64", "Kwai-Kolors/Kolors, unet/config.json", ("",), (1024,), (256,), dtype="f16"),
    Model("PixArt Alpha", 16, 16, "72", "PixArt-alpha/PixArt-XL-2-1024-MS, transformer", ("",), (1024, 4096), (120,)),
    Model("HunyuanDiT 1.2", 16, 16, "88", "Tencent-Hunyuan/HunyuanDiT-v1.2-Diffusers", ("",), (4096,), (333,)),
    Model("Wan 2.1 1.3B", 12, 12, "128", "Wan-AI/Wan2.1-T2V-1.3B", ("",), (32760,), (512,)),
    Model("Wan 2.1 14B over 8 GPUs", 5, 5, "128", "Wan-AI/Wan2.1-T2V-14B", ("",), (32760,), (512,)),
    Model("Whisper large v3", 20, 20, "64", "openai/whisper-large-v3", ("",), (1, 4, 448), (1500,), dtype="f16"),
    Model("T5 base", 12, 12, "64", "google-t5/t5-base", ("",), (1, 128), (512,)),
    Model("Llama 3.2 11B Vision", 32, 8, "128", "meta-llama/Llama-3.2-11B-Vision", ("",), (1, 512, 2048), (6404,)),
    Model("BLIP-2 Q-Former", 12, 12, "64", "Salesforce/blip2-opt-2.7b, qformer_config", ("",), (32,), (257,)),
)

# Beside packed texts of the language models. ModernBERT's local layers see both ways, which no word of a line says.
PACKED = (
    Model("ModernBERT base", 12, 12, "64", "answerdotai/ModernBERT-base", longest=8192),
    Model("Qwen2-VL vision", 16, 16, "80", "Qwen/Qwen2-VL-7B-Instruct, vision_config", longest=4096),
)
