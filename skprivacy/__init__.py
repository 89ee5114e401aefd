"""Privacy-preserving release of data columns with a provable trade-off."""

from .comparison import compare_mechanisms
from .design import design_mechanism, privacy_utility_path
from .exceptions import PrivacyLeakWarning, SolverError
from .inverse_design import smallest_epsilon
from .measures import KL, L1, AlphaLift, Chi2, Lip, MaxLift, Measure, get_measure
from .mechanism import Evaluation, Mechanism
from .metrics import audit, estimate_distribution, population_leakage
from .plotting import LeakageDisplay, MechanismDisplay, PrivacyUtilityDisplay
from .repetition import RepeatedLeakage, repeated_release_leakage
from .report import PrivacyReport
from .solvers import (
    Algorithm1Solver,
    BestPartitionSolver,
    Chi2DesignSolver,
    ColumnGenerationSolver,
    GreedyFunnelSolver,
    MaxLiftSolver,
    OptimalSolver,
    RandomizedResponseSolver,
    SubsetMergingSolver,
    WatchdogSolver,
)
from .transformer import PrivacyFunnelTransformer
from .utilities import Guess, MutualInformation, Target, Utility, get_utility

__version__ = "0.1.0.dev0"

__all__ = [
    "KL",
    "L1",
    "Algorithm1Solver",
    "AlphaLift",
    "BestPartitionSolver",
    "Chi2",
    "Chi2DesignSolver",
    "ColumnGenerationSolver",
    "Evaluation",
    "GreedyFunnelSolver",
    "Guess",
    "LeakageDisplay",
    "Lip",
    "MaxLift",
    "MaxLiftSolver",
    "Measure",
    "Mechanism",
    "MechanismDisplay",
    "MutualInformation",
    "OptimalSolver",
    "PrivacyFunnelTransformer",
    "PrivacyLeakWarning",
    "PrivacyReport",
    "PrivacyUtilityDisplay",
    "RandomizedResponseSolver",
    "RepeatedLeakage",
    "SolverError",
    "SubsetMergingSolver",
    "Target",
    "Utility",
    "WatchdogSolver",
    "audit",
    "compare_mechanisms",
    "design_mechanism",
    "estimate_distribution",
    "get_measure",
    "get_utility",
    "population_leakage",
    "privacy_utility_path",
    "repeated_release_leakage",
    "smallest_epsilon",
]
