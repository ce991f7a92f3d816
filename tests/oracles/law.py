"""FedLAW: Li et al., ICML 2023; MS 12.4. `proxy` = (a, b) of one more quadratic: the loss on the server's own data.

form "exp": softmax(x_1..m) and exp(x_g), from log p_k and 0; "quad": squares, from the same weights and gamma = 1.
start "uniform": quad's weights begin equal, as in the released code (server_funct.py), whatever the sizes.
swa: its option, first the weights, then gamma, half the epochs each; the weights' rate falls on a cosine of 100 epochs
for six epochs and is then annealed to .05 in ten, and what counts is the mean of the weights after those later epochs.
"""

import numpy as np
from _problem import grad, participation, rates


def mixed(x, models, form):
    """gamma sum_k lambda_k w_k."""
    if form == "exp":
        e = np.exp(x[:-1])
        return np.exp(x[-1]) * (e / e.sum()) @ models
    return x[-1] ** 2 * (x[:-1] ** 2 / (x[:-1] ** 2).sum()) @ models


def learned(x, models, proxy, form, lr, epochs, h=1e-30):
    """One full-batch Adam step an epoch (betas .5, .999), halved every 20; the gradient by a complex step."""
    m, v = np.zeros_like(x), np.zeros_like(x)
    for t in range(epochs):
        g = np.empty_like(x)
        for i, unit in enumerate(np.eye(len(x))):
            z = mixed(x + 1j * h * unit, models, form)
            g[i] = (0.5 * proxy[0] * (z - proxy[1]) ** 2).sum().imag / h
        m, v = 0.5 * m + 0.5 * g, 0.999 * v + 0.001 * g**2
        m_hat, v_hat = m / (1 - 0.5 ** (t + 1)), v / (1 - 0.999 ** (t + 1))
        x = x - lr * 0.5 ** (t // 20) * m_hat / (np.sqrt(v_hat) + 1e-8)
    return x


def adam(f, x, rates, h=1e-30):
    """Adam (betas .5, .999) on f by complex steps; every point it comes to."""
    m, v, found = np.zeros_like(x), np.zeros_like(x), []
    for t, rate in enumerate(rates):
        g = np.array([f(x + 1j * h * unit).imag / h for unit in np.eye(len(x))])
        m, v = 0.5 * m + 0.5 * g, 0.999 * v + 0.001 * g**2
        x = x - rate * (m / (1 - 0.5 ** (t + 1))) / (np.sqrt(v / (1 - 0.999 ** (t + 1))) + 1e-8)
        found.append(x)
    return found


def averaged(x, models, proxy, form, lr, epochs):
    """The two stages of swa; the scheduler's own steps, one after the other, as its classes take them."""

    def f(z):
        return (0.5 * proxy[0] * (mixed(z, models, form) - proxy[1]) ** 2).sum()

    rates, rate = [], lr
    for epoch in range(epochs // 2):
        rates.append(rate)
        if epoch <= 5:  # scheduler.step(): CosineAnnealingLR(T_max=100)
            rate = lr * (1 + np.cos(np.pi * (epoch + 1) / 100)) / 2
        else:  # swa_scheduler.step(): SWALR(swa_lr=.05), annealed over ten epochs
            step = epoch - 5
            before, after = ((1 - np.cos(np.pi * min(1, s / 10))) / 2 for s in (step - 1, step))
            base = 0.05 if before == 1 else (rate - before * 0.05) / (1 - before)
            rate = 0.05 * after + base * (1 - after)
    later = adam(lambda z: f(np.append(z, x[-1])), x[:-1], rates)[6:]  # epochs > swa_start = 5
    lam = np.mean(later, axis=0) if later else x[:-1]
    rates = [lr * 0.5 ** (t // 20) for t in range(epochs // 2)]
    gamma = [x[-1:], *adam(lambda z: f(np.append(lam, z)), x[-1:], rates)][-1]
    return np.append(lam, gamma)


def trajectory(
    a, b, w0, *, rounds, steps, lr, cohort=None, sizes=None, proxy,
    law_lr=0.01, epochs=20, form="exp", start="sizes", swa=False,
):  # fmt: skip
    K, n, cohorts = participation(a, steps, cohort, sizes)
    lr = rates(lr, rounds)
    w, path = w0, []
    for t in range(rounds):
        S = cohorts[t % len(cohorts)]
        models = []
        for k in S:
            x = w
            for _ in range(K[k]):
                x = x - lr[t] * grad(a[k], b[k], x)
            models.append(x)
        p = n[S] / n[S].sum() if start == "sizes" else np.full(len(S), 1 / len(S))
        x0 = np.append(np.log(p), 0.0) if form == "exp" else np.append(np.sqrt(p), 1.0)
        learn, models = averaged if swa else learned, np.array(models)
        w = mixed(learn(x0, models, proxy, form, law_lr, epochs), models, form)
        path.append(w)
    return np.array(path)
