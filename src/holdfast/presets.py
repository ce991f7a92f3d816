"""Names that papers use. A preset is the method's own mathematics: no weighting, clip, decay or schedule."""

from __future__ import annotations

PRESETS: dict[str, str] = {
    "fedavg": "",
    "fedprox": "prox",
    "feddyn": "dyn",
    "feddc": "dyn + scaffold",
    "fedcm": "cm",
    "fedsam": "sam",
    "fedasam": "asam",
    "mofedsam": "cm + sam",
    "fedgamma": "scaffold + sam",
    "fedspeed": "dyn + sam",
    "fedsmoo": "dyn + smoo",
    "fedlesam": "lesam",
    "fedlesam_s": "scaffold + lesam",
    "fedlesam_d": "dyn + lesam",
    "fedfft": "sam + specpert",
    "fedfft_s": "scaffold + sam + specpert",
    "fedfft_d": "dyn + sam + specpert",
    "specgradfilter": "specgrad",
    "fedinit": "init",
    "fednova": "nova",
    "fedgh": "gh",
    "fedeve": "eve",
    "fedavgm": "avgm",
    "fedadam": "adam",
    "fedper": "per",
}
