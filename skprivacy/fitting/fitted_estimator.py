"""FittedEstimator: the fitted attributes and the display of the transformer."""

from __future__ import annotations

from copy import copy
from dataclasses import fields, replace
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from .._messages import UNSAVED, Message, warn
from .._typing import FloatArray
from .._validation import message
from ..describing import ReleaseSummary
from ..encoding import Alphabet
from ..exceptions import NotDesignedError, PrivacyLeakWarning
from ..fidelity import Fidelity
from ..fitted import Fitted
from ..mechanism import Mechanism
from ..tables.table import ColumnRoles
from .counted_tables import Batches
from .learn import fit_mechanism
from .parameters import Settings

_Estimator = TypeVar("_Estimator", bound="FittedEstimator")


class FittedEstimator(BaseEstimator):
    """An estimator that is fitted at once, or in batches with a design on demand."""

    _fitted: Fitted | None = None
    _saved: Fitted | None = None  # last written by `to_json`
    _batches: Batches | None = None  # after `partial_fit`
    _designed_for: tuple[Any, ...] | None = None  # the parameters of the design for these

    def _settings(self) -> Settings:
        """Return the parameters, without those of a subclass."""
        given, names = self.get_params(deep=False), [field.name for field in fields(Settings)]
        return Settings(type(self).__name__, **{n: given[n] for n in names if n != "owner"})

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of `alphabet` if it is an instance: ``alphabet__max_cells``.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        self
        """
        alphabet = params.get("alphabet", getattr(self, "alphabet", None))
        if any(name.startswith("alphabet__") for name in params) and isinstance(alphabet, str):
            requirement = "an instance with parameters, such as TreeCells() or ScoreCells()"
            raise ValueError(message(type(self).__name__, "alphabet", requirement, alphabet))
        return super().set_params(**params)

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted is not None or self._batches is not None

    def _is_current(self, settings: Settings) -> bool:
        """Whether there is a design for the batches with these settings."""
        return self._fitted is not None and self._designed_for == settings.of_design

    def _up_to_date(self) -> Fitted:
        """Return what was fitted; after batches, design it now if need be."""
        check_is_fitted(self)
        if self._batches is not None:
            settings = settings_of(self)
            if not self._is_current(settings):
                self._fitted = None  # after an error, nothing of other parameters is kept
                inputs = self._batches.inputs(settings)
                self._fitted = fit_mechanism(settings.for_batches(), inputs)
                self._designed_for = settings.of_design
        assert self._fitted is not None
        return self._fitted

    def _for_attribute(self) -> Fitted:
        """Return what was fitted, with errors that `hasattr` understands."""
        try:
            return self._up_to_date()
        except NotFittedError:
            raise
        except Exception as error:
            raise NotDesignedError(*error.args) from error

    @property
    def mechanism_(self) -> Mechanism:
        """The channel and its figures, under the joint distribution learned by `fit`."""
        return self._for_attribute().mechanism

    @property
    def fidelity_(self) -> Fidelity:
        """How close released values are to the true ones, column by column."""
        return self._for_attribute().fidelity

    @property
    def summary_(self) -> ReleaseSummary:
        """Figures, verdict and sentences about the release."""
        summary = self._for_attribute().summary
        return replace(summary, has_values=self._settings().output == "label")

    @property
    def swaps_(self) -> dict[Any, pd.DataFrame]:
        """What each value of each column is released as: shares of all rows, by column."""
        return self._for_attribute().swaps

    @property
    def p_sx_(self) -> FloatArray:
        """The joint distribution of S and X learned by `fit`."""
        together = self.mechanism_.together
        if together is None or (p_sx := together.p_sx) is None:
            raise self._no_attribute("p_sx_")
        return p_sx

    @property
    def categories_(self) -> list[npt.NDArray[np.object_]]:
        """The symbols of each column of X."""
        return _categories(self._for_attribute().alphabet)

    @property
    def sensitive_categories_(self) -> list[npt.NDArray[np.object_]]:
        """The symbols of each sensitive column."""
        if (training := self._for_attribute().training) is None:
            raise self._no_attribute("sensitive_categories_")
        return _categories(training.alphabet)

    @property
    def cells_(self) -> pd.DataFrame:
        """The cells of the table: their share of the rows, their rules and commonest values."""
        if (described := self._for_attribute().cells) is None:
            template = (
                "{owner!r} object has no attribute 'cells_': the symbols of X are combinations of "
                "values. For cells, set {alphabet='cells'}."
            )
            raise AttributeError(Message.of(template, owner=type(self).__name__))
        return described

    def _no_attribute(self, name: str) -> AttributeError:
        why = "it was loaded, and files hold nothing about S"
        return AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}: {why}.")

    def _set_features(self, roles: ColumnRoles) -> None:
        self.n_features_in_ = roles.n_columns
        if roles.has_string_names:
            self.feature_names_in_ = np.array(roles.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """Return the attributes that scikit-learn shows in a notebook: nothing about S.

        Nothing is designed for it: before batches have a design there are few.
        """
        shown = copy(self)
        if self._batches is not None and not self._is_current(self._settings()):
            shown._fitted = None
        shown._batches = None
        attributes = super(FittedEstimator, shown)._get_fitted_attr_html(doc_link)
        for name in ("p_sx_", "sensitive_categories_", "summary_", "swaps_"):
            attributes.pop(name, None)
        return attributes

    def _html_repr(self) -> str:
        """Return the diagram of scikit-learn, with the mechanism below it if it is designed."""
        diagram: str = estimator_html_repr(self)
        fitted, is_designed = self._fitted, self._batches is None
        if fitted is None or not (is_designed or self._is_current(self._settings())):
            return diagram
        return diagram + self.summary_._repr_html_()


def settings_of(estimator: FittedEstimator) -> Settings:
    """Return the current parameters of an estimator, checked."""
    settings = estimator._settings()
    settings.check()
    return settings


def fitted_of(estimator: FittedEstimator) -> Fitted:
    """Return what was fitted; after batches, design it now if need be."""
    return estimator._up_to_date()


def warn_of_unsaved(estimator: FittedEstimator, secret_key: object) -> None:
    """Warn if a key is used with a fit that was not saved."""
    fitted = fitted_of(estimator)
    if secret_key is not None and fitted.training is not None and estimator._saved is not fitted:
        advice = " Save the mechanism with to_json, and release other rows with from_json."
        warn(UNSAVED + advice, PrivacyLeakWarning)


def set_fitted(estimator: _Estimator, fitted: Fitted) -> _Estimator:
    """Return the same estimator, fitted, without batches.

    Everything is set at once and last, so that a failed fit changes nothing.
    """
    estimator._fitted, estimator._batches = fitted, None
    estimator._set_features(fitted.roles)
    if fitted.training is not None:
        estimator.n_samples_seen_ = fitted.training.n_rows
    return estimator


def _categories(alphabet: Alphabet) -> list[npt.NDArray[np.object_]]:
    labels = (column.symbol_labels for column in alphabet.columns)
    return [np.array([np.nan if x is None else x for x in each], dtype=object) for each in labels]
