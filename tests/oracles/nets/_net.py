"""A network of two layers in plain NumPy, its gradient, and FedAvg around it. Written from the specs alone.

Sources are cited as ML (methods-local.md), MS (methods-server.md), AD (addenda.md), each with its section.
The model is one flat vector: weight and bias of the body (linear, tanh), then of the head (linear).
"""

import numpy as np

WIDE, HIDDEN, CLASSES = 4, 6, 3
SHAPES = (HIDDEN, WIDE), (HIDDEN,), (CLASSES, HIDDEN), (CLASSES,)
BODY, HEAD = HIDDEN * (WIDE + 1), CLASSES * (HIDDEN + 1)
SIZE = BODY + HEAD

# Four clients of 9, 6, 14 and 5 samples. Client 1 has none of class 2, client 3 has nothing else.
COUNTS = np.array([[5, 3, 1], [4, 2, 0], [3, 4, 7], [0, 0, 5]])
DRAW = np.random.default_rng(31)
Y = np.concatenate([DRAW.permutation(np.repeat(np.arange(CLASSES), row)) for row in COUNTS])
X = DRAW.normal(size=(len(Y), WIDE)) + 0.7 * (Y[:, None] - 1) * np.array([1.0, -1.0, 0.5, 0.0])
START = DRAW.normal(size=SIZE) / 2
SIZES = COUNTS.sum(1)
FIRST = np.cumsum(SIZES) - SIZES
OWN = [list(range(first, first + size)) for first, size in zip(FIRST, SIZES, strict=True)]

COMPANY = [[0, 1], [1, 2, 3], [0, 2], [0, 1, 2, 3]]  # 2 and 3 are new in round 2; 1 and 3 come back in round 4
RATES = [0.4, 0.35, 0.3, 0.25]
BATCH = 5


def batches(i, t):
    """Of five samples, the last one smaller (of client 1 a single one); client 1 makes two passes."""
    turned = OWN[i][t:] + OWN[i][:t]
    once = [turned[s : s + BATCH] for s in range(0, len(turned), BATCH)]
    return once * 2 if i == 1 else once


def split(w):
    ends = np.cumsum([np.prod(shape) for shape in SHAPES])
    return [piece.reshape(shape) for piece, shape in zip(np.split(w, ends[:-1]), SHAPES, strict=True)]


def forward(w, x):
    """Logits, and the features: what goes into the last linear layer."""
    a, b, c, d = split(w)
    features = np.tanh(x @ a.T + b)
    return features @ c.T + d, features


def softmax(s):
    e = np.exp(s - s.real.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def cross_entropy(s, y):
    """Mean over the batch of -log softmax(s)_y."""
    return -np.log(softmax(s)[np.arange(len(y)), y]).mean()


def gradient(f, w):
    """Of an analytic real f, to rounding: f(w + i h e_j) = f(w) + i h df/dw_j - O(h^2), and h^2 vanishes beside f.

    So f may take no modulus or conjugate, and must decide (max, median, relu) by real parts.
    """
    g = np.empty(len(w))
    for j in range(len(w)):
        v = w.astype(complex)
        v[j] += 1e-30j
        g[j] = f(v).imag / 1e-30
    return g


def sgd(loss, w, i, t):
    """The local run of client i in round t: w <- w - eta grad of loss(w, x, y), batch by batch (ML 2.1)."""
    for rows in batches(i, t):
        w = w - RATES[t] * gradient(lambda v, rows=rows: loss(v, X[rows], Y[rows]), w)
    return w


def fedavg(end, shared=slice(None)):
    """The server's w after every round (MS 3): w <- w + sum_k n_k / n (w_k - w), over the entries `shared`.

    `end(i, t, w)` is where client i ends that has received w in round t.
    """
    w, path = START, []
    for t, ids in enumerate(COMPANY):
        step = np.array([SIZES[i] / SIZES[ids].sum() * (end(i, t, w) - w) for i in ids]).sum(0)
        w = w.copy()
        w[shared] += step[shared]
        path.append(w)
    return np.array(path)


def plain(w, x, y):
    """The data loss of every method."""
    return cross_entropy(forward(w, x)[0], y)


def with_loss(loss):
    """FedAvg whose clients descend `loss(w, x, y, i)`."""
    return fedavg(lambda i, t, w: sgd(lambda v, x, y: loss(v, x, y, i), w, i, t))
