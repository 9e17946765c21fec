"""What a user does with a variant that was just added: prints what was found, picked and compiled, as JSON."""

import json

from attention import AttentionProblem
from attention.choose.choose import choose
from attention.kernels.launch.source import source_of
from attention.variant import by_path
from microbench.compile import Cubin, compile_all
from microbench.machine.arch import by_name
from microbench.results.profile import Profile

problem = AttentionProblem(4, 16, 16, 4096, 4096, 128, causal=True, dtype="bfloat16", device="cuda")
pick = choose(Profile.load("h200-sxm-141gb"), problem, only="four_warps").pick
variant = by_path(pick.variant)
(made,) = compile_all([source_of(variant.folder, variant.steps(problem, pick.config)[0], by_name("sm80"))])
assert isinstance(made, Cubin), made
found = {"configs": len(variant.configs()), "picked": pick.variant, "warps": pick.config["warps"]}
print(json.dumps(found | {"spills": bool(made.resources.spills)}))
