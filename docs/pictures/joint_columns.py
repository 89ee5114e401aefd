"""Two columns: released one by one, they reveal more together than each budget allows."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from house_style import BUDGET, QUIET, RELEASED
from sklearn.datasets import load_diabetes

from skprivacy import Evaluation, design_mechanism

EPSILON, BANDS = 0.005, 3
data = load_diabetes(as_frame=True, scaled=False).data
bp, bmi = (pd.qcut(data[name], BANDS, labels=False) for name in ("bp", "bmi"))
sex = data["sex"].astype(int)

# P(s, x) with x = the pair of bands.
pairs = pd.crosstab(sex, BANDS * bp + bmi).reindex(columns=range(BANDS**2), fill_value=0)
one, two = (design_mechanism(pd.crosstab(sex, band), EPSILON) for band in (bp, bmi))
together = design_mechanism(pairs, EPSILON)
# Independent noise on each column: the channel of the pair is their Kronecker product.
apart = Evaluation.of_channel(np.kron(one.channel, two.channel), together.p_sx)

names = ["blood pressure alone", "body mass index alone", "both, released separately"]
names.append("both, released jointly")
figure, axis = plt.subplots(figsize=(7.2, 2.4))
values = [m.max_leakage for m in (one, two, apart, together)]
bars = axis.barh(names, values, color=[QUIET, QUIET, BUDGET, RELEASED], height=0.65)
axis.bar_label(bars, [f"{value:.4f}" for value in values], padding=4)
axis.axvline(EPSILON, color="black", lw=1.2, ls="--", label=f"ε = {EPSILON}")
axis.set(xlabel="leakage of the worst output about sex (nats)", xlim=(0, 1.15 * max(values)))
axis.invert_yaxis()
axis.tick_params(left=False)
axis.legend(loc="upper right")
