"""Golden values of the specs, as data. P8 is the problem of methods-local.md (ML) 8.1; addenda.md is AD.

LOCAL, CLIPPED, SERVER and MORE hold, per row: `text` (the method as a sum of parts), `oracle` (the file here), its
`options`, `steps`, `sizes`, and `rows`: round -> (w_0, w_7, ||w||). lr 0.1, both clients in every round. Line numbers
are those of the two spec files.
`adam_lr` is the part adam's own option lr; the oracles have it under that name because `lr` is the local rate.
"""

import numpy as np

J = np.arange(8.0)
A = np.stack([1 + 0.1 * J, 2 - 0.1 * J])  # ML 8.1, line 560
B = np.stack([1 + 0.25 * J, -1 + 0.05 * J**2])  # ML 8.1, line 560
W0 = 0.1 * J  # ML 8.1, line 560
LR = 0.1  # ML 8.1, line 561
OPTIMUM = (A * B).mean(axis=0) / A.mean(axis=0)  # ML 8.1: the minimiser of the average loss
OPTIMUM_PRINTED = (-0.333333, -0.143333, 0.12, 0.446667, 0.826667, 1.25, 1.706667, 2.186667)  # ML 8.1, line 562
OPTIMUM_NORM = 3.207127  # ML 8.1, line 562

LOCAL = {  # ML 8.2: no clip, no decay
    "FedAvg": {  # ML 8.2, line 567
        "text": "fedavg",
        "oracle": "fedavg",
        "options": {},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.131405, 1.509340, 2.283343),
            2: (-0.191731, 1.870438, 2.782931),
            3: (-0.219426, 2.031546, 3.006168),
        },
    },
    "FedProx": {  # ML 8.2, line 568
        "text": "prox(mu=0.1)",
        "oracle": "prox",
        "options": {"mu": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.128939, 1.493564, 2.261513),
            2: (-0.189491, 1.856203, 2.763153),
            3: (-0.217926, 2.021921, 2.992786),
        },
    },
    "SCAFFOLD": {  # ML 8.2, line 569
        "text": "scaffold",
        "oracle": "scaffold",
        "options": {},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.131405, 1.509340, 2.283343),
            2: (-0.231407, 1.883131, 2.791947),
            3: (-0.286141, 2.051933, 3.022277),
        },
    },
    "FedDyn": {  # ML 8.2, line 570
        "text": "dyn(alpha=0.1)",
        "oracle": "dyn",
        "options": {"alpha": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.257879, 2.287127, 3.364155),
            2: (-0.365526, 2.887581, 4.198777),
            3: (-0.352548, 2.747329, 3.999193),
        },
    },
    "FedCM": {  # ML 8.2, line 571
        "text": "cm(alpha=0.1)",
        "oracle": "cm",
        "options": {"alpha": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.023535, 0.807962, 1.323374),
            2: (-0.065918, 1.002366, 1.581223),
            3: (-0.121691, 1.258126, 1.927034),
        },
    },
    "FedSAM": {  # ML 8.2, line 572
        "text": "sam(rho=0.1)",
        "oracle": "sam",
        "options": {"rho": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.143816, 1.531975, 2.309685),
            2: (-0.205867, 1.891313, 2.806495),
            3: (-0.231666, 2.045896, 3.021680),
        },
    },
    "FedASAM": {  # ML 8.2, line 573
        "text": "asam(rho=0.5, eta=0.01)",
        "oracle": "asam",
        "options": {"rho": 0.5, "eta": 0.01},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.168563, 1.733610, 2.524617),
            2: (-0.252027, 2.074275, 3.040195),
            3: (-0.279705, 2.140065, 3.204977),
        },
    },
    "MoFedSAM": {  # ML 8.2, line 574
        "text": "cm(alpha=0.1) + sam(rho=0.1)",
        "oracle": "mofedsam",
        "options": {"alpha": 0.1, "rho": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.025590, 0.810961, 1.326414),
            2: (-0.071607, 1.010543, 1.590096),
            3: (-0.131990, 1.272636, 1.943644),
        },
    },
    "FedGAMMA": {  # ML 8.2, line 575
        "text": "scaffold + sam(rho=0.1)",
        "oracle": "fedgamma",
        "options": {"rho": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.143816, 1.531975, 2.309685),
            2: (-0.246980, 1.902610, 2.814738),
            3: (-0.301037, 2.065681, 3.038292),
        },
    },
    "FedSpeed": {  # ML 8.2, line 576
        "text": "dyn(alpha=0.1) + sam(rho=0.1)",
        "oracle": "fedspeed",
        "options": {"alpha": 0.1, "rho": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.282267, 2.331508, 3.418286),
            2: (-0.380740, 2.901130, 4.214577),
            3: (-0.351044, 2.720610, 3.965784),
        },
    },
    "FedSMOO code": {  # ML 8.2, line 577
        "text": "dyn(alpha=0.1) + smoo(rho=0.1, form='code')",
        "oracle": "smoo",
        "options": {"alpha": 0.1, "rho": 0.1, "form": "code"},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.281920, 2.331651, 3.418301),
            2: (-0.377968, 2.897590, 4.210070),
            3: (-0.346354, 2.712247, 3.955260),
        },
    },
    "FedSMOO paper": {  # ML 8.2, line 578
        "text": "dyn(alpha=0.1) + smoo(rho=0.1, form='paper')",
        "oracle": "smoo",
        "options": {"alpha": 0.1, "rho": 0.1, "form": "paper"},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.281920, 2.331651, 3.418301),
            2: (-0.378045, 2.897542, 4.210083),
            3: (-0.346502, 2.712110, 3.955251),
        },
    },
    "FedLESAM": {  # ML 8.2, line 579
        "text": "lesam(rho=0.1, mode='paper')",
        "oracle": "lesam",
        "options": {"rho": 0.1, "mode": "paper"},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.131405, 1.509340, 2.283343),
            2: (-0.197979, 1.909838, 2.837793),
            3: (-0.228699, 2.088577, 3.085576),
        },
    },
    "FedLESAM-S": {  # ML 8.2, line 580
        "text": "lesam(rho=0.1) + scaffold",
        "oracle": "fedlesam_s",
        "options": {"rho": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.131405, 1.509340, 2.283343),
            2: (-0.237655, 1.922531, 2.846958),
            3: (-0.298987, 2.108906, 3.101242),
        },
    },
    "FedLESAM-D": {  # ML 8.2, line 581
        "text": "dyn(alpha=0.1) + lesam(rho=0.1)",
        "oracle": "fedlesam_d",
        "options": {"rho": 0.1, "alpha": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.257879, 2.287127, 3.364155),
            2: (-0.377787, 2.964842, 4.307043),
            3: (-0.370890, 2.854017, 4.148029),
        },
    },
    "FedDC": {  # ML 8.2, line 584
        "text": "dyn(alpha=0.1) + scaffold",
        "oracle": "feddc",
        "options": {"alpha": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.257879, 2.287127, 3.364155),
            2: (-0.441674, 2.911942, 4.222335),
            3: (-0.469559, 2.781143, 4.033688),
        },
    },
    "FedFFT": {  # ML 8.2, line 586
        "text": "sam(rho=0.1) + specpert(r=0.45)",
        "oracle": "specpert",
        "options": {"r": 0.45, "rho": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.141955, 1.520072, 2.289524),
            2: (-0.201473, 1.880184, 2.788718),
            3: (-0.226005, 2.037811, 3.009937),
        },
    },
    "FedFFT-S": {  # ML 8.2, line 587
        "text": "sam(rho=0.1) + scaffold + specpert(r=0.45)",
        "oracle": "fedfft_s",
        "options": {"r": 0.45, "rho": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.141955, 1.520072, 2.289524),
            2: (-0.240944, 1.892101, 2.797470),
            3: (-0.292717, 2.057614, 3.025909),
        },
    },
    "FedFFT-D": {  # ML 8.2, line 588
        "text": "dyn(alpha=0.1) + sam(rho=0.1) + specpert(r=0.45)",
        "oracle": "fedfft_d",
        "options": {"r": 0.45, "rho": 0.1, "alpha": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.278581, 2.308182, 3.376966),
            2: (-0.371982, 2.892270, 4.201831),
            3: (-0.340692, 2.731258, 3.989583),
        },
    },
    "SpecGradFilter": {  # ML 8.2, line 589
        "text": "specgrad(r=0.45)",
        "oracle": "specgrad",
        "options": {"r": 0.45},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.340804, 1.072458, 1.456070),
            2: (-0.493998, 1.238402, 1.623691),
            3: (-0.562866, 1.312340, 1.704654),
        },
    },
    "SGF + FedProx": {  # ML 8.2, line 590
        "text": "prox(mu=0.1) + specgrad(r=0.45)",
        "oracle": "sgf_prox",
        "options": {"r": 0.45, "mu": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.334149, 1.065181, 1.449246),
            2: (-0.487939, 1.231838, 1.616686),
            3: (-0.558727, 1.307897, 1.699699),
        },
    },
    "SGF + SCAFFOLD": {  # ML 8.2, line 591
        "text": "scaffold + specgrad(r=0.45)",
        "oracle": "sgf_scaffold",
        "options": {"r": 0.45},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.340804, 1.072458, 1.456070),
            2: (-0.493362, 1.237930, 1.623307),
            3: (-0.560542, 1.311108, 1.703178),
        },
    },
    "SGF + FedDyn": {  # ML 8.2, line 592
        "text": "dyn(alpha=0.1) + specgrad(r=0.45)",
        "oracle": "sgf_dyn",
        "options": {"r": 0.45, "alpha": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.668297, 1.430362, 1.838225),
            2: (-0.924900, 1.705189, 2.175430),
            3: (-0.868313, 1.639213, 2.094367),
        },
    },
}

CLIPPED = {  # ML 8.3: wd 0.01, clip max-norm 1.0; rounds 1 and 3
    "FedAvg clipped": {  # ML 8.3, line 598
        "text": "clip(max=1.0, scope='official') + wd(wd=0.01)",
        "oracle": "clipped",
        "options": {"name": "fedavg", "max": 1.0, "scope": "official", "wd": 0.01},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.086697, 0.893992, 1.396939),
            3: (-0.234528, 1.217373, 1.788157),
        },
    },
    "FedSAM clipped": {  # ML 8.3, line 599
        "text": "sam(rho=0.1) + clip(max=1.0, scope='official') + wd(wd=0.01)",
        "oracle": "clipped",
        "options": {"name": "fedsam", "max": 1.0, "scope": "official", "wd": 0.01, "rho": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.087569, 0.893567, 1.396812),
            3: (-0.236970, 1.216775, 1.788812),
        },
    },
    "FedProx clipped": {  # ML 8.3, line 600
        "text": "prox(mu=0.1) + clip(max=1.0, scope='official') + wd(wd=0.01)",
        "oracle": "clipped",
        "options": {"name": "fedprox", "max": 1.0, "scope": "official", "wd": 0.01, "mu": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.086585, 0.862570, 1.345490),
            3: (-0.230009, 1.121524, 1.640579),
        },
    },
    "SCAFFOLD clipped": {  # ML 8.3, line 601
        "text": "scaffold + clip(max=1.0, scope='official') + wd(wd=0.01)",
        "oracle": "clipped",
        "options": {"name": "scaffold", "max": 1.0, "scope": "official", "wd": 0.01},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.086697, 0.893992, 1.396939),
            3: (-0.264265, 1.325144, 1.931139),
        },
    },
    "FedDyn clipped": {  # ML 8.3, line 602
        "text": "dyn(alpha=0.1) + clip(max=1.0, scope='official') + wd(wd=0.01)",
        "oracle": "clipped",
        "options": {"name": "feddyn", "max": 1.0, "scope": "official", "wd": 0.01, "alpha": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.173170, 1.025139, 1.529649),
            3: (-0.608417, 1.784127, 2.514819),
        },
    },
    "FedCM clipped": {  # ML 8.3, line 603
        "text": "cm(alpha=0.1) + clip(max=1.0, scope='official') + wd(wd=0.01)",
        "oracle": "clipped",
        "options": {"name": "fedcm", "max": 1.0, "scope": "official", "wd": 0.01, "alpha": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.023488, 0.804357, 1.317368),
            3: (-0.120799, 1.236469, 1.892205),
        },
    },
    "MoFedSAM clipped": {  # ML 8.3, line 604
        "text": "cm(alpha=0.1) + sam(rho=0.1) + clip(max=1.0, scope='official') + wd(wd=0.01)",
        "oracle": "clipped",
        "options": {"name": "mofedsam", "max": 1.0, "scope": "official", "wd": 0.01, "alpha": 0.1, "rho": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.025540, 0.807351, 1.320405),
            3: (-0.131083, 1.249931, 1.907249),
        },
    },
    "FedGAMMA clipped": {  # ML 8.3, line 605
        "text": "scaffold + sam(rho=0.1) + clip(max=1.0, scope='official') + wd(wd=0.01)",
        "oracle": "clipped",
        "options": {"name": "fedgamma", "max": 1.0, "scope": "official", "wd": 0.01, "rho": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.087569, 0.893567, 1.396812),
            3: (-0.266549, 1.317930, 1.922760),
        },
    },
    "FedSpeed clipped": {  # ML 8.3, line 606
        "text": "dyn(alpha=0.1) + sam(rho=0.1) + clip(max=1.0, scope='official') + wd(wd=0.01)",
        "oracle": "clipped",
        "options": {"name": "fedspeed", "max": 1.0, "scope": "official", "wd": 0.01, "alpha": 0.1, "rho": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.174818, 1.023776, 1.528724),
            3: (-0.613857, 1.780101, 2.513978),
        },
    },
    "FedSMOO clipped": {  # ML 8.3, line 607 (holds for form code only: the paper form gives norm 2.514684 in round 3)
        "text": "dyn(alpha=0.1) + smoo(rho=0.1, form='code') + clip(max=1.0, scope='official') + wd(wd=0.01)",
        "oracle": "clipped",
        "options": {
            "name": "fedsmoo",
            "max": 1.0,
            "scope": "official",
            "wd": 0.01,
            "alpha": 0.1,
            "rho": 0.1,
            "form": "code",
        },
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.174810, 1.023790, 1.528737),
            3: (-0.614784, 1.785301, 2.520707),
        },
    },
    "FedProx prox_inside": {  # ML 8.3, line 608; the norm after round 3 in CLIPPED_NORMS
        "text": "prox(mu=0.1) + clip(max=1.0, scope='prox_inside') + wd(wd=0.01)",
        "oracle": "clipped",
        "options": {"name": "fedprox", "max": 1.0, "scope": "prox_inside", "wd": 0.01, "mu": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.086690, 0.894013, 1.396961),
        },
    },
    "FedDyn prox_inside": {  # ML 8.3, line 608; the norm after round 3 in CLIPPED_NORMS
        "text": "dyn(alpha=0.1) + clip(max=1.0, scope='prox_inside') + wd(wd=0.01)",
        "oracle": "clipped",
        "options": {"name": "feddyn", "max": 1.0, "scope": "prox_inside", "wd": 0.01, "alpha": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.173380, 1.088026, 1.630727),
        },
    },
}

CLIPPED_NORMS = {  # ML 8.3, line 608: ||w|| after round 3
    "FedProx prox_inside": 1.788225,
    "FedDyn prox_inside": 2.893207,
}

SERVER = {  # AD A4
    "FedAvgM heavy": {  # AD A4, line 40
        "text": "avgm(beta=0.9, form='heavy')",
        "oracle": "avgm",
        "options": {"beta": 0.9, "form": "heavy"},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.131405, 1.509340, 2.283343),
            2: (-0.309996, 2.598844, 3.798424),
            3: (-0.434451, 3.337087, 4.828765),
        },
    },
    "FedAvgM dampened": {  # AD A4, line 41
        "text": "avgm(beta=0.9, form='dampened')",
        "oracle": "avgm",
        "options": {"beta": 0.9, "form": "dampened"},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.013140, 0.780934, 1.290301),
            2: (-0.037397, 0.930226, 1.490422),
            3: (-0.070345, 1.132773, 1.765517),
        },
    },
    "FedAdam v0=tau2": {  # AD A4, line 42
        "text": "adam(lr=0.1, beta1=0.9, beta2=0.99, tau=0.001, v0='tau2')",
        "oracle": "adam",
        "options": {"adam_lr": 0.1, "beta1": 0.9, "beta2": 0.99, "tau": 0.001, "v0": "tau2"},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.092682, 0.798772, 1.384980),
            2: (-0.214154, 0.931941, 1.681566),
            3: (-0.332945, 1.086741, 2.017220),
        },
    },
    "FedAdam v0=zero": {  # AD A4, line 43
        "text": "adam(lr=0.1, beta1=0.9, beta2=0.99, tau=0.001, v0='zero')",
        "oracle": "adam",
        "options": {"adam_lr": 0.1, "beta1": 0.9, "beta2": 0.99, "tau": 0.001, "v0": "zero"},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.092928, 0.798780, 1.384047),
            2: (-0.214607, 0.931954, 1.682901),
            3: (-0.333472, 1.086758, 2.018434),
        },
    },
    "FedAdam v0=zero bias-corrected": {  # AD A4, line 44
        "text": "adam(lr=0.1, beta1=0.9, beta2=0.99, tau=0.001, v0='zero', bias_correction=True)",
        "oracle": "adam",
        "options": {"adam_lr": 0.1, "beta1": 0.9, "beta2": 0.99, "tau": 0.001, "v0": "zero", "bias_correction": True},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.099245, 0.799877, 1.385797),
            2: (-0.194032, 0.899518, 1.615238),
            3: (-0.277062, 0.998744, 1.839714),
        },
    },
    "FedAvg K=(3,7)": {  # AD A4, line 47
        "text": "fedavg",
        "oracle": "fedavg",
        "options": {},
        "steps": [3, 7],
        "sizes": None,
        "rows": {
            1: (-0.259642, 1.372448, 1.982573),
            2: (-0.381508, 1.691538, 2.395384),
            3: (-0.438706, 1.842953, 2.593711),
        },
    },
    "FedNova K=(3,7)": {  # AD A4, line 48
        "text": "nova",
        "oracle": "nova",
        "options": {},
        "steps": [3, 7],
        "sizes": None,
        "rows": {
            1: (-0.056411, 1.598337, 2.468992),
            2: (-0.084161, 1.976310, 3.023736),
            3: (-0.097812, 2.135341, 3.261590),
        },
    },
    "FedNova + FedGH K=(3,7)": {  # AD A4, line 49
        "text": "gh + nova",
        "oracle": "nova_gh",
        "options": {},
        "steps": [3, 7],
        "sizes": None,
        "rows": {
            1: (-0.258887, 1.846024, 2.682858),
            2: (-0.389079, 2.104974, 3.002359),
            3: (-0.371255, 2.065328, 2.955035),
        },
    },
    "FedAvg p=(.75,.25)": {  # AD A4, line 50
        "text": "fedavg",
        "oracle": "fedavg",
        "options": {},
        "steps": 5,
        "sizes": [3.0, 1.0],
        "rows": {
            1: (0.139053, 1.725919, 2.882278),
            2: (0.212026, 2.156839, 3.627197),
            3: (0.250321, 2.337839, 3.954478),
        },
    },
    "FedGH": {  # AD A4, line 51
        "text": "gh",
        "oracle": "gh",
        "options": {},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.308268, 1.765391, 2.554580),
            2: (-0.437120, 2.061860, 2.916528),
            3: (-0.416991, 2.027931, 2.870314),
        },
    },
    "FedGH p=(.75,.25)": {  # AD A4, line 52
        "text": "gh",
        "oracle": "gh",
        "options": {},
        "steps": 5,
        "sizes": [3.0, 1.0],
        "rows": {
            1: (-0.169955, 1.977363, 2.959945),
            2: (-0.263042, 2.171439, 3.184925),
            3: (-0.253988, 2.151136, 3.161687),
        },
    },
    "FedEve innovation": {  # AD A4, line 53
        "text": "eve(q_mode='innovation', r_mean='weighted')",
        "oracle": "eve",
        "options": {"q_mode": "innovation", "r_mean": "weighted"},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.044536, 0.974300, 1.550008),
            2: (-0.099877, 1.313175, 2.012667),
            3: (-0.153464, 1.639429, 2.462791),
        },
    },
    "FedEve energy": {  # AD A4, line 54
        "text": "eve(q_mode='energy', r_mean='weighted')",
        "oracle": "eve",
        "options": {"q_mode": "energy", "r_mean": "weighted"},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.044536, 0.974300, 1.550008),
            2: (-0.102774, 1.330487, 2.036426),
            3: (-0.156929, 1.659319, 2.490211),
        },
    },
    "FedEve innovation, R weighted, p=(.75,.25)": {  # AD A4, line 55
        "text": "eve(q_mode='innovation', r_mean='weighted')",
        "oracle": "eve",
        "options": {"q_mode": "innovation", "r_mean": "weighted"},
        "steps": 5,
        "sizes": [3.0, 1.0],
        "rows": {
            1: (0.066559, 1.191065, 1.995824),
            2: (0.136067, 1.671031, 2.800499),
            3: (0.197794, 2.069284, 3.476711),
        },
    },
    "FedEve innovation, R uniform, p=(.75,.25)": {  # AD A4, line 56
        "text": "eve(q_mode='innovation', r_mean='uniform')",
        "oracle": "eve",
        "options": {"q_mode": "innovation", "r_mean": "uniform"},
        "steps": 5,
        "sizes": [3.0, 1.0],
        "rows": {
            1: (0.074307, 1.248228, 2.090525),
            2: (0.146545, 1.740789, 2.918281),
            3: (0.206888, 2.119385, 3.564488),
        },
    },
}

EVE_GAIN = {  # AD A4: G of rounds 1, 2, 3
    "FedEve innovation": (0.338918, 0.279297, 0.222138),  # line 53
    "FedEve energy": (0.338918, 0.354171, 0.293178),  # line 54
    "FedEve innovation, R weighted, p=(.75,.25)": (0.478659, 0.319398, 0.276455),  # line 55
    "FedEve innovation, R uniform, p=(.75,.25)": (0.534378, 0.351840, 0.320185),  # line 56
}

LIMITS = {  # ||w - w*|| on P8 after many rounds: name -> (text, oracle, options, steps, printed, tolerance)
    "FedAvg": ("fedavg", "fedavg", {}, 5, 0.150685, 1e-6),  # AD A4, line 60; ML 8.4, line 611: 1.507e-1
    "FedAvgM heavy": ("avgm(form='heavy')", "avgm", {"form": "heavy"}, 5, 0.150685, 1e-6),  # AD A4, line 60
    "FedAvgM dampened": ("avgm(form='dampened')", "avgm", {"form": "dampened"}, 5, 0.150685, 1e-6),  # AD A4, line 60
    "FedNova K=(3,7)": ("nova", "nova", {}, [3, 7], 0.509632, 1e-6),  # AD A4, line 60
    "FedAvg K=(3,7)": ("fedavg", "fedavg", {}, [3, 7], 0.668968, 1e-6),  # AD A4, line 60
    "FedGH": ("gh", "gh", {}, 5, 0.457285, 1e-6),  # AD A4, line 60
    "FedGH K=1": ("gh", "gh", {}, 1, 0.652683, 1e-6),  # AD A5, line 63
    "FedProx": ("prox(mu=0.1)", "prox", {"mu": 0.1}, 5, 1.504e-1, 5e-5),  # ML 8.4, line 611
    "FedCM": ("cm(alpha=0.1)", "cm", {"alpha": 0.1}, 5, 1.501e-2, 5e-6),  # ML 8.4, line 611
    "SCAFFOLD": ("scaffold", "scaffold", {}, 5, 0.0, 1e-14),  # ML 8.4, line 611: < 1e-14
    "FedDyn": ("dyn(alpha=0.1)", "dyn", {"alpha": 0.1}, 5, 0.0, 1e-14),  # ML 8.4, line 611: < 1e-14
    "FedDC": ("dyn(alpha=0.1) + scaffold", "feddc", {"alpha": 0.1}, 5, 0.0, 1e-14),  # ML 8.4, line 611: < 1e-14
    "FedSAM": ("sam(rho=0.1)", "sam", {"rho": 0.1}, 5, 1.394e-1, 5e-5),  # ML 8.4, line 611
    "FedGAMMA": ("scaffold + sam(rho=0.1)", "fedgamma", {"rho": 0.1}, 5, 1.768e-2, 5e-6),  # ML 8.4, line 611
    "FedSpeed": ("dyn(alpha=0.1) + sam(rho=0.1)", "fedspeed", {"rho": 0.1}, 5, 1.768e-2, 5e-6),  # ML 8.4, line 611
    "MoFedSAM": ("cm(alpha=0.1) + sam(rho=0.1)", "mofedsam", {"rho": 0.1}, 5, 2.2e-3, 5e-5),  # ML 8.4, line 611
    "FedASAM": ("asam(rho=0.5, eta=0.01)", "asam", {}, 5, 2.268e-1, 5e-5),  # ML 8.4, line 611
    "FedFFT": ("sam(rho=0.1) + specpert(r=0.45)", "specpert", {"r": 0.45}, 5, 1.507e-1, 5e-5),  # ML 8.4, line 612
    "FedFFT-S": ("sam + scaffold + specpert(r=0.45)", "fedfft_s", {"r": 0.45}, 5, 1.02e-3, 5e-6),  # ML 8.4, line 612
    "FedFFT-D": ("dyn + sam + specpert(r=0.45)", "fedfft_d", {"r": 0.45}, 5, 1.02e-3, 5e-6),  # ML 8.4, line 612
}

LIMIT_NORMS = {  # ||w|| of the limit: name -> (text, oracle, options, printed, tolerance)
    "SpecGradFilter": ("specgrad(r=0.45)", "specgrad", {"r": 0.45}, 1.772305, 1e-6),  # ML 8.4, line 612
    "SGF + SCAFFOLD": ("scaffold + specgrad(r=0.45)", "sgf_scaffold", {"r": 0.45}, 1.767709, 1e-6),  # ML 8.4, line 612
    "SGF + FedDyn": ("dyn(alpha=0.1) + specgrad(r=0.45)", "sgf_dyn", {"r": 0.45}, 1.767709, 1e-6),  # ML 8.4, line 612
}

NO_LIMIT = {  # residual step ||w^{t+1} - w^t|| for ever: name -> (text, oracle, options, printed, tolerance)
    "FedSMOO": ("dyn(alpha=0.1) + smoo(rho=0.1)", "smoo", {}, 6e-2, 5e-3),  # ML 5.10, line 424; ML 8.4, line 612
    "FedLESAM": ("lesam(rho=0.1)", "lesam", {}, 5.6e-2, 5e-4),  # ML 5.11, line 434; ML 8.4, line 612
    "FedLESAM-D": ("dyn + lesam(rho=0.1)", "fedlesam_d", {}, 1.7e-1, 5e-3),  # ML 5.11, line 434; ML 8.4, line 612
}

EVE_DISTANCES = {20: 1.3e-1, 200: 8.7e-4, 2000: 1.8e-3, 20000: 2.0e-4}  # AD A5, line 63: to FedAvg's limit, by round

MORE = {  # rows of the parts that came later, for test_more_golden.py and test_more_parts.py
    "FedGloSS sigma/N": {  # ML 8.2, line 582
        "text": "gloss(rho_g=0.1, beta=10.0) + sam(rho=0.1)",  # radii .1, beta 10, no schedule
        "oracle": "gloss",
        "options": {"rho": 0.1, "beta": 10.0, "rho_local": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.282267, 2.331508, 3.418286),
            2: (-0.394873, 2.980816, 4.325441),
            3: (-0.342231, 2.668393, 3.894224),
        },
    },
    "FedGloSS released, sigma/(N S)": {  # ML 8.2, line 583
        "text": "gloss(rho_g=0.1, beta=10.0, form='code') + sam(rho=0.1)",  # server dual also over |S|
        "oracle": "gloss",
        "options": {"rho": 0.1, "beta": 10.0, "form": "code", "rho_local": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.211700, 1.923631, 2.851417),
            2: (-0.321616, 2.548555, 3.720612),
            3: (-0.352147, 2.715143, 3.954709),
        },
    },
    "FedSOL": {  # ML 8.2, line 585
        "text": "sol(rho=0.1, form='distance')",  # l_p = 1/2 ||w - w^t||^2
        "oracle": "sol",
        "options": {"rho": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.119447, 1.489874, 2.260720),
            2: (-0.177347, 1.851129, 2.760797),
            3: (-0.206135, 2.016995, 2.989762),
        },
    },
    "FedYogi v0=tau2": {  # AD A4, line 45
        "text": "adam(rule='yogi', lr=0.1)",  # beta .9, .99
        "oracle": "adam",
        "options": {"rule": "yogi", "adam_lr": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.092679, 0.798772, 1.384985),
            2: (-0.213735, 0.931587, 1.680669),
            3: (-0.331692, 1.085535, 2.014436),
        },
    },
    "FedAdagrad v0=tau2": {  # AD A4, line 46
        "text": "adam(rule='adagrad', beta1=0.0, lr=0.1)",  # beta1 0
        "oracle": "adam",
        "options": {"rule": "adagrad", "beta1": 0.0, "adam_lr": 0.1},
        "steps": 5,
        "sizes": None,
        "rows": {
            1: (-0.099242, 0.799877, 1.385848),
            2: (-0.149819, 0.867981, 1.536574),
            3: (-0.180954, 0.922295, 1.638971),
        },
    },
}

WRONG = {  # what two mistakes in FedEve would give: the rows above must tell them apart
    "FedEve broadcast at w": {  # AD A4, line 57
        1: (-0.044536, 0.974300, 1.550008),
        2: (-0.108787, 1.368918, 2.089475),
        3: (-0.175051, 1.774254, 2.649957),
    },
    "FedEve new w from b": {  # AD A4, line 58
        1: (-0.044536, 0.974300, 1.550008),
        2: (-0.144413, 1.587476, 2.391217),
        3: (-0.247322, 2.214497, 3.262097),
    },
}
