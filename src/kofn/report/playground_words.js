// What the playground says in words: bags to begin with and what they teach, statements in English and in Python.
const countWords = (() => {
  const spread = (n, low, high) => Array.from({ length: n }, (_, i) => low + ((high - low) * i) / (n - 1));
  const PRESETS = [
    {
      title: "One of eight",
      lesson: "The strong get stronger. One of them is positive, and nobody says which: the likeliest rises at the cost of all others. Run it; then make another bar the tallest and run again.",
      probabilities: [0.04, 0.1, 0.06, 0.5, 0.06, 0.12, 0.2, 0.05],
      statement: { name: "Exactly", counts: 1 },
    },
    {
      title: "All alike",
      lesson: "Half of eight, and all alike: the expected count is right, every posterior is its prior, and nothing moves. Drag one bar and run: the tie is broken.",
      probabilities: Array(8).fill(0.5),
      statement: { name: "Exactly", counts: 4 },
    },
    {
      title: "Explained away",
      lesson: "At least one is positive, and the model is nearly sure of one: that explains the label, and hardly any gradient reaches the rest. Pull the tall bar down and see who takes over.",
      probabilities: [0.3, 0.25, 0.95, 0.4, 0.2, 0.35, 0.15, 0.3, 0.1, 0.25],
      statement: { name: "AtLeast", low: 1 },
    },
    {
      title: "Half of forty",
      lesson: "Twenty of forty. The model expects too many, so all arrows point down; those it is unsure of, in the middle, move most. As they move, the distribution narrows around 20.",
      probabilities: spread(40, 0.25, 0.98),
      statement: { name: "Exactly", counts: 20 },
    },
    {
      title: "A noisy count",
      lesson: "14.6 was published: the count and Laplace noise of scale 2. Every count may lie behind it, the near ones more probably. Raise the scale: the label says less, and the arrows shrink.",
      probabilities: spread(20, 0.05, 0.85),
      statement: { name: "Noisy", observed: 14.6, noise: "Laplace", scale: 2 },
    },
    {
      title: "Withheld: 1 to 4",
      lesson: "A small count was withheld: all that is known is that it is 1 to 4. Once nearly all of the distribution lies there, the loss is nearly 0 and nothing more is learned.",
      probabilities: spread(16, 0.15, 0.7),
      statement: { name: "Between", low: 1, high: 4 },
    },
    {
      title: "All or none",
      lesson: "All eight are positive or none is. Which of the two wins depends on where the model begins: run it, then lower a few bars and run again.",
      probabilities: [0.6, 0.5, 0.55, 0.62, 0.45, 0.58, 0.5, 0.4],
      statement: { name: "OneOf", allowed: [0, 8] },
    },
  ];
  const MEANINGS = {
    Exactly: ({ counts }) => `${counts} of the instances ${counts === 1 ? "is" : "are"} positive: S = ${counts}`,
    AtLeast: ({ low }) => `${low} or more are positive: S ≥ ${low}`,
    Between: ({ low, high }) => `ends included: ${low} ≤ S ≤ ${high}`,
    OneOf: ({ allowed }) => `S is one of ${allowed.join(", ") || "nothing"}; press counts below to choose`,
    Noisy: ({ observed, noise }) => `S + noise = ${observed}${noise === "DiscreteLaplace" ? ", noise an integer" : ""}`,
  };
  const NOISES = { Laplace: "Laplace(0, scale)", Normal: "Normal(0, scale)", DiscreteLaplace: "DiscreteLaplace(scale)" };
  const PYTHON = {
    Exactly: ({ counts }) => `kofn.Exactly(${counts})`,
    AtLeast: ({ low }) => `kofn.AtLeast(${low})`,
    Between: ({ low, high }) => `kofn.Between(${low}, ${high})`,
    OneOf: ({ allowed }) => `kofn.OneOf([${allowed.join(", ")}])`,
    Noisy: ({ observed, noise, scale }) =>
      `kofn.Noisy(${observed}, ${noise === "DiscreteLaplace" ? `kofn.targets.DiscreteLaplace(${scale})` : `torch.distributions.${noise}(0.0, ${scale})`})`,
  };
  return { PRESETS, MEANINGS, NOISES, PYTHON };
})();
