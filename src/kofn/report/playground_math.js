"use strict";
// The count S of positives among independent instances: its distribution, the loss of a statement about it, and the
// gradient of that loss. No drawing here. The names and arguments of statements are those of kofn's targets.
const countMath = (() => {
  const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
  const sigmoid = (x) => (x < 0 ? Math.exp(x) / (1 + Math.exp(x)) : 1 / (1 + Math.exp(-x)));
  const logit = (p) => Math.log(p) - Math.log1p(-p);

  const logSumExp = (terms) => {
    const top = Math.max(...terms);
    return top === -Infinity ? top : top + Math.log(terms.reduce((sum, term) => sum + Math.exp(term - top), 0));
  };

  const logAddExp = (a, b) => {
    const top = Math.max(a, b);
    return top === -Infinity ? top : top + Math.log1p(Math.exp(Math.min(a, b) - top));
  };

  // log P(S = 0), ..., log P(S = n). One more instance: S stays if it is negative and grows by one if it is positive.
  const logProbs = (logits) => {
    const values = new Array(logits.length + 1).fill(-Infinity);
    values[0] = 0;
    logits.forEach((x, i) => {
      const positive = -softplus(-x), negative = -softplus(x);
      for (let s = i + 1; s > 0; s--) values[s] = logAddExp(values[s] + negative, values[s - 1] + positive);
      values[0] += negative;
    });
    return values;
  };

  const noises = {
    Laplace: (scale) => (d) => -Math.abs(d) / scale - Math.log(2 * scale),
    Normal: (scale) => (d) => -((d / scale) ** 2) / 2 - Math.log(scale) - Math.log(2 * Math.PI) / 2,
    DiscreteLaplace: (scale) => (d) =>
      Number.isInteger(d) ? Math.log(Math.tanh(0.5 / scale)) - Math.abs(d) / scale : -Infinity,
  };

  // log P(label | S = s) as a function of s: for a set of counts 0 inside and -Infinity outside.
  const inside = (condition) => (condition ? 0 : -Infinity);
  const statements = {
    Exactly: ({ counts }) => (s) => inside(s === counts),
    AtLeast: ({ low }) => (s) => inside(s >= low),
    Between: ({ low, high }) => (s) => inside(low <= s && s <= high),
    OneOf: ({ allowed }) => (s) => inside(allowed.includes(s)),
    Noisy: ({ observed, noise, scale }) => (s) => noises[noise](scale)(observed - s),
  };

  // All that the page shows. With L(s) = P(label | S = s) and R the count of the other instances,
  //   P(label) = p_i E L(R + 1) + (1 - p_i) E L(R),   posterior_i = P(y_i = 1 | label) = p_i E L(R + 1) / P(label),
  // and of loss = -log P(label) the gradient by the logit is p_i - posterior_i. With the posterior's complement it is
  //   p_i (1 - posterior_i) - (1 - p_i) posterior_i,
  // in which nothing cancels for probabilities next to 0 or 1. An impossible label has no posterior: no gradient.
  const answer = (logits, statement) => {
    const agrees = statements[statement.name](statement);
    const logProbability = logProbs(logits);
    const logAgreement = logProbability.map((_, s) => agrees(s));
    const logLikelihood = logSumExp(logProbability.map((value, s) => value + logAgreement[s]));
    const priors = logits.map(sigmoid);
    const posteriors = [];
    const gradient = logits.map((x, i) => {
      if (logLikelihood === -Infinity) {
        posteriors.push(NaN);
        return 0;
      }
      const others = logProbs(logits.filter((_, j) => j !== i));
      const withLabel = (y) => logSumExp(others.map((value, r) => value + logAgreement[r + y])) - logLikelihood;
      const positive = Math.exp(withLabel(1) - softplus(-x));
      const negative = Math.exp(withLabel(0) - softplus(x));
      posteriors.push(positive);
      return priors[i] * negative - sigmoid(-x) * positive;
    });
    return { probabilities: logProbability.map(Math.exp), logAgreement, loss: -logLikelihood, priors, posteriors, gradient };
  };

  // One step of gradient descent. Second derivatives of the loss are at most 1/4 in any direction (those of the
  // log-partition function, less a covariance), so with a rate of up to 8 no step makes the loss larger. A certain
  // instance has an infinite logit and stays where it is.
  const step = (logits, gradient, rate) => logits.map((x, i) => x - rate * gradient[i]);

  return { answer, logit, sigmoid, step, statements: Object.keys(statements), noises: Object.keys(noises) };
})();
