"""The tensors of features of a known call, on their way to the kernel: as the judged call before it brought them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from attention.call import STARTS, Extras
from attention.kernels.launch.forms import Form
from attention.op.served import expanded

Cast = Callable[[torch.Tensor, Extras], Extras]


@dataclass(frozen=True, eq=False)
class Operands:
    """What a kind of call brings.

    names   fields of Extras, in the order in which the call brings them
    cast    what its front end makes of query (as the kernel reads it) and of them: as the operator takes them
    form    how the caller holds query and key
    bring   what the kernel's launcher makes of them: as the kernel reads them fast
    copied  at which places of `names` copies are read, not what the call brings
    """

    names: tuple[str, ...]
    cast: Cast
    form: Form
    bring: Callable[[Extras], Extras] = lambda extras: extras
    copied: tuple[int, ...] = ()

    def read(self, query: torch.Tensor, key: torch.Tensor, given: Sequence[torch.Tensor]) -> Extras:
        """As the kernel reads them: views of the caller's tensors, or copies."""
        return self._read(query, key, dict(zip(self.names, given, strict=True)))

    def copies(self, query: torch.Tensor, key: torch.Tensor, given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The same, with what is read where it lies as the caller has it. Starts tell how many sequences there are."""
        asked = {name: given[at] for at, name in enumerate(self.names) if at in self.copied or name in STARTS}
        extras, found = self._read(query, key, asked), list(given)
        for at in self.copied:
            found[at] = getattr(extras, self.names[at])
        return found

    def _read(self, query: torch.Tensor, key: torch.Tensor, given: dict[str, torch.Tensor]) -> Extras:
        query, key = self.form.to_kernel(query), self.form.to_kernel(key)
        return self.bring(expanded(self.cast(query, Extras(**given)), query, key))
