"""The command line: thin commands over the library."""

import argparse

from . import __version__
from .datasets import load_diabetes_joint
from .design import privacy_utility_path

_DEMO_EPSILONS = (0.0, 0.001, 0.005, 0.02, 0.05)


def main(arguments=None):
    """Run a command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="skprivacy", description="Release data columns with a provable privacy budget."
    )
    parser.add_argument("--version", action="version", version=f"skprivacy {__version__}")
    commands = parser.add_subparsers(title="commands", required=True)
    demo = commands.add_parser("demo", help="design mechanisms for a built-in table")
    demo.set_defaults(run=_demo)
    options = parser.parse_args(arguments)
    return options.run(options)


def _demo(_):
    joint = load_diabetes_joint()
    n_rows, (n_s, n_x) = int(joint.to_numpy().sum()), joint.shape
    print("What may be released of blood pressure without giving away sex?")
    print(f"{n_rows} patients; S = sex ({n_s} symbols), X = blood pressure ({n_x} bands)")
    print("Leakage is the KL divergence of P(S|y) from P(S), in nats, for every output y.\n")
    print(f"{'budget':>8}  {'leakage':>9}  {'I(S;Y)':>9}  {'utility kept':>12}  {'outputs':>7}")
    for mechanism in privacy_utility_path(joint, _DEMO_EPSILONS):
        print(
            f"{mechanism.epsilon:>8g}  {mechanism.max_leakage:>9.6f}  "
            f"{mechanism.sensitive_information:>9.6f}  {mechanism.normalized_utility:>12.1%}  "
            f"{mechanism.channel.shape[1]:>7}"
        )
    print("\nThe guarantee is about the joint distribution estimated from these rows.")
    return 0
