"""Runs DataSynthesizer for trade_off.py, in an environment of its own: a file in, a file out.

``python with_datasynthesizer.py IN.csv OUT.csv EPSILON SEED``: it imports nothing of this project.
"""

import sys
import tempfile
from pathlib import Path

import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator


def main():
    """Write as many made-up rows as there are true ones."""
    source, target, epsilon, seed = *sys.argv[1:3], float(sys.argv[3]), int(sys.argv[4])
    describer, generator = DataDescriber(category_threshold=50), DataGenerator()
    # k = 1: each column depends on one other. With 2 it takes ten times as long.
    describer.describe_dataset_in_correlated_attribute_mode(
        source, epsilon=epsilon, k=1, seed=seed
    )
    with tempfile.TemporaryDirectory() as folder:
        description = str(Path(folder) / "description.json")
        describer.save_dataset_description_to_file(description)
        generator.generate_dataset_in_correlated_attribute_mode(
            len(pd.read_csv(source)), description, seed=seed
        )
    generator.synthetic_dataset.to_csv(target, index=False)


if __name__ == "__main__":
    main()
