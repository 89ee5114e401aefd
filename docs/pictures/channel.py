"""A channel is a matrix: each row says what a symbol of X becomes."""

from house_style import blood_pressure

from skprivacy import MechanismDisplay, PrivacyFunnelTransformer

counts = blood_pressure()
cells = counts.set_axis(range(counts.shape[1]), axis=1).stack()  # numbers keep their order
rows = cells.index.repeat(cells).to_frame(index=False).set_axis(["sex", "band"], axis=1)
funnel = PrivacyFunnelTransformer(0.005, output="symbol", sensitive="sex", columns="band").fit(
    rows
)
names = tuple(counts.columns)
mechanism = funnel.mechanism_.renamed(x_labels=names, y_labels=names)
display = MechanismDisplay.from_mechanism(mechanism)
display.figure_.set_size_inches(5.2, 4.0)
display.ax_.set_ylabel("X: blood pressure")
