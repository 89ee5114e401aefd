"""A channel is a matrix: each row says what becomes of a symbol of X."""

from house_style import blood_pressure

from skprivacy import MechanismDisplay, design_mechanism

mechanism = design_mechanism(blood_pressure(), 0.005)
display = MechanismDisplay.from_mechanism(mechanism)
display.figure_.set_size_inches(5.2, 4.0)
display.ax_.set_ylabel("X: blood pressure")
