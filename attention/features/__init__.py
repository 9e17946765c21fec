"""The features of attention: whatever module here binds FEATURE, in order. attention.feature says what one is."""

import importlib
import pkgutil
from pathlib import Path

from attention.feature import Feature, Operand

FOLDER = Path(__file__).parent


def _found() -> tuple[Feature, ...]:
    features = []
    for module in pkgutil.iter_modules(__path__):
        feature = getattr(importlib.import_module(f"{__name__}.{module.name}"), "FEATURE", None)
        if not isinstance(feature, Feature):
            raise TypeError(f"attention/features/{module.name}.py binds no FEATURE of a subclass of Feature.")
        feature.name = module.name
        features.append(feature)
    features.sort(key=lambda feature: (feature.order, feature.name))
    hides = next((each for each in features if each.device and each.device.hides), None)
    for each in features:
        if hides and each.device and each.device.changes and not each.device.hides and each.order > hides.order:
            raise TypeError(
                f"attention/features/{each.name}.py changes scores that {hides.name} has hidden; give it an "
                f"order below {hides.order}."
            )
    return tuple(features)


FEATURES = _found()
LOGITS = frozenset(feature.operands[0].name for feature in FEATURES if feature.logit)
OPERANDS: tuple[Operand, ...] = tuple(operand for feature in FEATURES for operand in feature.operands)
