"""What is worth a look in a table, and does not stop a command."""


class TableWarning(UserWarning):
    """Something in a table that is likely a mistake, or was not expected.

    It is given for a CSV that seems to have no header, a feature that seems to be the truth, categories that were never
    seen in training, and text in CSV that a spreadsheet would run as a formula.

    Examples:
        >>> import warnings
        >>> from kofn.tables import TableWarning
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("error", TableWarning)  # for those who would rather stop
    """
