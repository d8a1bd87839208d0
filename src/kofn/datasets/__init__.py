"""Data sets, and the tasks of the three kinds that are made from labelled data."""

from kofn.datasets._adult import load_adult
from kofn.datasets._augment import augment_patches
from kofn.datasets._bundled import BundledTask, load_breast_cancer_task, load_digits_task
from kofn.datasets._cifar10 import load_cifar10
from kofn.datasets._colon import Colon, load_colon
from kofn.datasets._labelled import Labelled, Splits, standardise
from kofn.datasets._magic import load_magic
from kofn.datasets._mnist import load_mnist
from kofn.datasets._task_makers import hold_out, make_llp_bags, make_mil_bags, make_pu_split
from kofn.datasets._tasks import LLPTask, MILTask, PUTask

__all__ = [
    "BundledTask",
    "Colon",
    "LLPTask",
    "Labelled",
    "MILTask",
    "PUTask",
    "Splits",
    "augment_patches",
    "hold_out",
    "load_adult",
    "load_breast_cancer_task",
    "load_cifar10",
    "load_colon",
    "load_digits_task",
    "load_magic",
    "load_mnist",
    "make_llp_bags",
    "make_mil_bags",
    "make_pu_split",
    "standardise",
]
