"""The warning of a fit that has learned nothing from the features."""


class FitWarning(UserWarning):
    """A fit that is no better on held-out bags than a model without features.

    Examples:
        >>> import warnings
        >>> from kofn.estimators import FitWarning
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", FitWarning)  # where baselines stand beside it anyway
    """
