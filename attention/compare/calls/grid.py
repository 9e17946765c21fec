"""What `attention bench` times by default, and `make bench` with it: each later choice on this CPU rests on it."""

from attention.problem import AttentionProblem

# The first shows what a call costs. The rest are so many lengths and head dims that it can be asked of them how far a
# prediction carries over (attention.choose.calibration).
FULL = ("1,1,1,32,32,16", "1,8,8,64,1024,64", "2,12,12,200,77,80", "1,16,4,256,2048,128")
SQUARE = ("1,8,8,128,128,64", "1,8,8,384,384,64", "1,8,8,1024,1024,64", "1,8,2,512,512,128", "1,8,2,2048,2048,128")
HALF_SQUARE = ("1,8,8,128,128,64", "1,8,8,512,512,64", "1,16,4,1024,1024,128")
HALVES = ("float16", "bfloat16")


def problems(dtype: str | None = None, causal: bool | None = None) -> list[AttentionProblem]:
    """The problems of one dtype, causal or full; all by default."""
    listed = [("float32", False, shape) for shape in FULL]
    listed += [("float32", triangle, shape) for shape in SQUARE for triangle in (False, True)]
    listed += [(half, triangle, shape) for half in HALVES for shape in HALF_SQUARE for triangle in (False, True)]
    every = [AttentionProblem.parse_shape(shape, dtype=word, causal=triangle) for word, triangle, shape in listed]
    if dtype is not None and all(each.dtype != dtype for each in every):
        return [AttentionProblem.parse_shape(shape, dtype=dtype, causal=bool(causal)) for shape in SQUARE]
    return [each for each in every if dtype in (None, each.dtype) and causal in (None, each.causal)]
