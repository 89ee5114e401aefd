"""A channel is a matrix: each row says what a symbol of X becomes."""

import numpy as np
from house_style import blood_pressure

from skprivacy import MechanismDisplay, design_mechanism
from skprivacy.releasing.output_names import name_outputs

mechanism = design_mechanism(blood_pressure(), 0.005)
mechanism = name_outputs(mechanism, 1 - np.eye(len(mechanism.x_labels)))
display = MechanismDisplay.from_mechanism(mechanism)
display.figure_.set_size_inches(5.2, 4.0)
display.ax_.set_ylabel("X: blood pressure")
