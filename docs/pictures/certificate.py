"""Two bounds that meet: what is reached, and what no mechanism exceeds."""

import matplotlib.pyplot as plt
import numpy as np
from house_style import BUDGET, QUIET, RELEASED

from skprivacy import design_mechanism

JOINT = np.array([[0.90, 0.08, 0.40], [0.025, 0.82, 0.05], [0.075, 0.10, 0.55]]) / 3
tolerances = np.geomspace(0.3, 1e-4, 24)
path = [
    design_mechanism(
        JOINT, 0.1, scope="average", solver="optimal", solver_options={"tol": tolerance}
    )
    for tolerance in tolerances
]
lower, upper = [m.utility for m in path], [m.upper_bound for m in path]
figure, axis = plt.subplots(figsize=(6.4, 2.9))
axis.fill_between(tolerances, lower, upper, color="#e5e7eb", step="post", lw=0)
axis.step(tolerances, upper, where="post", color=BUDGET, lw=2, label="no mechanism exceeds this")
axis.step(tolerances, lower, where="post", color=RELEASED, lw=2, label="reached by the mechanism")
axis.axhline(path[-1].utility, color=QUIET, ls=":", lw=1.2)
axis.set(xscale="log", xlabel="tol, the accepted gap", ylabel="I(X;Y), nats")
axis.invert_xaxis()
axis.legend(loc="lower right")
