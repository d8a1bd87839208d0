"""The distribution of a count, and that of labels given their count, as `torch.distributions`."""

from kofn.distributions import _divergences as _divergences  # registers them with torch.distributions.kl_divergence
from kofn.distributions._conditional_bernoulli import ConditionalBernoulli
from kofn.distributions._poisson_binomial import PoissonBinomial

__all__ = ["ConditionalBernoulli", "PoissonBinomial"]
