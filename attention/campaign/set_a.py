"""Set A: the problems on which the model is built. Each is timed in every legal configuration, as often as one likes.

Set B has to hold what is in no line here: two head dims, a pair of features and a class of (queries, keys) (draw.py).
So these keep to usual head dims and some padded ones, to single features and the three pairs that models pose, and
leave out such rectangles as a short prompt behind a long cache.
"""

from functools import cache

from attention.campaign.posed import Posed, parse

# class    B   Hq Hkv     Sq    Skv    D  dtype words
LINES = """
prefill   16   32  32   1024   1024   64  bf16
prefill   16   32  32   1024   1024   64  bf16  causal
prefill    4   32  32   4096   4096   64  bf16
prefill    4   32  32   4096   4096   64  bf16  causal
prefill    1   32  32  16384  16384   64  bf16  causal
prefill    4   32   8   2048   2048   64  f16   causal
prefill   16   16  16   1024   1024   96  bf16
prefill    4   16  16   4096   4096   96  bf16  causal
prefill    1   16   4  16384  16384   96  bf16  causal
prefill   16   16  16   1024   1024  128  bf16
prefill   16   16  16   1024   1024  128  bf16  causal
prefill    4   16  16   4096   4096  128  bf16
prefill    4   16  16   4096   4096  128  bf16  causal
prefill    1   16  16  16384  16384  128  bf16
prefill    1   16  16  16384  16384  128  bf16  causal
prefill    1    8   1  32768  32768  128  bf16  causal
prefill    1    2   1  65536  65536  128  bf16  causal
prefill    4   32   8   4096   4096  128  bf16  causal
prefill    4   16  16   4096   4096  128  f16
prefill    5   16  16   3000   3000  128  bf16  causal
prefill    1   32   8   8192   8192  128  bf16  causal
prefill    2   24  24   4250   4250  128  bf16
prefill    1    4   4   2048   2048  128  bf16  causal
prefill    8   16  16   1024   1024  192  bf16
prefill    2   16  16   4096   4096  192  bf16  causal
prefill   16    8   8   1024   1024  256  bf16
prefill    4    8   8   4096   4096  256  bf16
prefill    4    8   8   4096   4096  256  bf16  causal
prefill    1    8   2  16384  16384  256  bf16  causal
prefill    4   25  25   4096   4096   80  bf16
prefill    4   20  20   2048   2048  112  bf16  causal
prefill    2   16  16   4096   4096  160  bf16  causal
prefill    1    2   2   2048   2048  128  bf16
prefill    1    2   2   4096   4096   64  bf16  causal
prefill    1    1   1   8192   8192  128  bf16  causal
prefill    1    2   1   2048   2048  256  bf16  causal
prefill    1    3   3   4096   4096   80  bf16
prefill    2    8   8   1024   1024   80  f16
prefill    2    4   1   1200   1200  128  bf16  causal
prefill   16   32  32    256    256   96  bf16  causal
prefill   32    4   4    360    360   96  bf16  causal
prefill    2   16  16    784    784   72  bf16
prefill   16   16  16    576    576   72  bf16
prefill   64   16  16    196    196   72  bf16
prefill    1   16  16   2304   2304   72  bf16
prefill    4   16  16   3600   3600   72  bf16
prefill    1   16  16    900    900   72  bf16
prefill    4   16  16   2304    300   72  bf16
prefill   16   16  16   1156    128   72  bf16
prefill    4   16  16   2048   2048   72  bf16  causal
prefill    2    8   8   3600   3600   40  f16
prefill    8    8   8   2304   2304   40  f16
prefill    4    8   8   3600     77   40  f16
prefill   16    8   8   1024     77   40  f16
prefill    2   16  16   3600    300   88  bf16
prefill    1   16  16   2304   2304   88  bf16
prefill   16   16  16    257    257   88  bf16
decode     4   16   8      1   8192   72  bf16
decode    16   16  16      1   1024   88  bf16
short    128   12  12    128    128   64  bf16
short     64   16  16    256    256   64  bf16
short     32   32   8    512    512   64  bf16  causal
short    128   16  16    128    128  128  bf16  causal
short     32   32   8    512    512  128  bf16  causal
short      1   32   8    512    512  128  bf16  causal
short     64    8   8    256    256  256  f16
short     32   16  16    512    512   96  bf16
short     16   10  10    197    197   80  f16
short      1   16  16    512    512   64  bf16
packed     0   16  16      0      0  128  bf16  causal lengths=16x1024
packed     0   32   8      0      0  128  bf16  causal lengths=4096+512+2048+1024+3000+128+1500+2560+1516
packed     0   16  16      0      0  128  bf16  causal lengths=8192+63x128
packed     0   16  16      0      0  128  bf16  lengths=511x32+8192
packed     0   32  32      0      0   64  bf16  lengths=64x256
packed     0   32  32      0      0   64  bf16  lengths=4096+512+2048+1024+3000+128+1500+2560+1516
packed     0    8   8      0      0  256  bf16  causal lengths=4096+1024+2048+512
packed     0   16  16      0      0   96  f16   lengths=1536+2x700+9x300
packed     0   32   8      0      0  128  bf16  causal lengths=128+417+64+972+64+167+355+799+875+519+768+128+896
packed     0   16   4      0      0  128  bf16  causal lengths=1024+409+64+782+1002+64+620+124+618+128+515+369+1024+768
packed     0    8   1      0      0  128  bf16  causal lengths=1901+1544+3456+1825+2304+4096+2304+2580
packed     0   14   2      0      0   64  bf16  causal lengths=748+128+128+128+744+64+640+128+516+768+64+64+440+64
packed     0   12  12      0      0   64  bf16  lengths=64+64+128+730+678+128+752+404+128+64+512+375+730+1012
decode    16   32   8      1   1024  128  bf16
decode     1   32   8      1   8192  128  bf16
decode     1   32   8      1  65536  128  bf16
decode    64   32   8      1   4096  128  bf16
decode   128   32   8      1   2048  128  bf16
decode    16   32  32      1   2048   64  bf16
decode    16   16  16      1   8192  128  f16
decode     8    8   1      1   8192  256  bf16
decode    32   16   8      1   2048  256  bf16
decode     1    8   4      1   4096  256  bf16
decode    64   32  32      1    512   96  bf16
decode     8   32  32      1   2048   96  bf16
decode     1   32  32      1   2048   96  bf16
decode    32   32  32      1   1024   80  bf16
decode     1   32   8     16   8192  128  bf16
decode    16   32   8     16   4096  128  bf16
decode     1   32   8     64  32768  128  bf16
decode     8   16   2    128   4096   64  bf16
decode    16    8   1      8   2048  128  bf16
decode     4   32   8      6   3000  128  bf16
decode     2   64   8      5   4096   64  bf16
decode     1   32   8      1    512  128  bf16
decode     1   32   8      1   2048  128  bf16
decode     1   32   4      1   1024  128  bf16
decode     1   32   4      1  16384  128  bf16
decode     1   64   8      1   1024  128  bf16
decode     1   64   8      1   4096  128  bf16
decode     1   64   8      1  32768  128  bf16
decode     1   28   4      1    768  128  bf16
decode     4   32   8      1    512  128  bf16
decode     4   32   8      1   4096  128  bf16
decode     8   28   4      1   4096  128  bf16
decode    16   16   2      1   1024  128  bf16
decode    16    8   2      1    256  128  bf16
decode    64   32   8      1    512  128  bf16
decode    64   64   8      1    640  128  bf16
decode   128   16   2      1    384  128  bf16
decode   256   28   4      1    896  128  bf16
decode   256    8   1      1   1536  128  bf16
decode     1   64   8      1   1024   64  bf16
decode    16   12  12      1    384   64  bf16
decode    64   32   8      1   1024   64  bf16
decode     8   32   8      1   2048   64  bf16
decode     1    8   4      1   1024  256  bf16
decode     8    8   4      1    400  256  bf16
decode     1   32   4     12   1500  128  bf16  causal
decode     4   16   2     14   2048  128  bf16  causal
decode     8   32   8      8   8192  128  bf16  causal
decode    16   16   2     10    320  128  bf16  causal
decode     1    8   4     12    400  256  bf16  causal
decode     1   32   4      1    256  128  bf16
decode     2   32   4      1    540  128  bf16
decode    16    4   1      1    384  128  bf16
decode     1   16   4      1   1400  128  bf16
decode     2   16   2      1   2200  128  bf16
decode     4   14   2      1   5000  128  bf16
decode    32   64   8      1    700  128  bf16
decode     4   64   8      1    384   64  bf16
decode     2    8   4      1    600  256  bf16
decode     8    4   2      1    384  256  bf16
decode    64   32   8      1    300  128  bf16
decode    64   64   8      1    640   64  bf16
decode     2   32   8     12    768  128  bf16  causal
decode     8   64   8      6   2560  128  bf16  causal
features   4   16  16   4096   4096  128  bf16  causal softcap=30
features   4    8   4   4096   4096  256  bf16  causal softcap=50
features   2   16  16   4096   4096  128  bf16  mask
features   2   32  32   2048   2048   64  bf16  mask
features   2   32  32   2048   2048   64  bf16  causal mask
features   8    1   1   4096   4096   64  bf16  mask
features   4    3   3   2048   2048   96  bf16  mask
features   8    8   2   2048   2048  192  bf16  mask
features  16   12  12    256    256   64  bf16  mask
features   2   32  32   2048   2048   64  bf16  bias
features   2   32  32   2048   2048   64  bf16  bias=f32
features   2   16  16   4096   4096  128  bf16  bias
features   2   16  16   4096   4096  128  bf16  bias=f32
features   1   12  12    512    512   64  bf16  bias
features  32   12  12    512    512   64  bf16  bias
features   4   64  64    256    256   64  bf16  bias
features  32   12  12    128    128   64  bf16  bias
features   4   16  16   4096   4096  128  bf16  causal alibi
features   8   32  32   1024   1024   64  bf16  causal alibi
features   4   32  32   2048   2048   64  bf16  alibi
features   4   64   8   2048   2048   64  bf16  causal sinks
features   2   64   8   4096   4096   64  bf16  causal window=128 sinks
features   2   16  16   8192   8192  128  bf16  causal window=1024
features   1   32  32   8192   8192   64  bf16  causal window=512
features   2    8   4   8192   8192  256  bf16  causal window=4096 softcap=50
features   0   16  16      0      0  128  bf16  causal window=1024 lengths=8192+4096+2x2048
features   1   64   8      1   4096   64  bf16  sinks
features  16   16   2      1   2048   64  bf16  window=128
features   1   32   8      1   2048  128  bf16  used=700
features   1   32   4      1   8192  128  bf16  used=5000
features  16   32   8      1    512  128  bf16  used=65+390+80+90+490+270+280+310+384+312+157+350+84+300+274+417
features  64   28   4      1    768  128  bf16  used=16x600+16x450+16x300+16x200
features   8   12  12      1   1024   64  bf16  used=850+540+630+550+900+300+370+840
features   8   32  32      6   1024   96  bf16  causal used=900+760+1024+480+330+810+640+150
features   4   12  12    128    128   64  bf16  mask
"""


@cache
def problems() -> tuple[Posed, ...]:
    """Set A, in the order of its lines."""
    return tuple(parse(line) for line in LINES.strip().splitlines())
