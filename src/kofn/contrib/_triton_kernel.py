"""One bag a program: log P(low <= S <= high) and its gradient by the logits, in one launch. In Triton's language.

The formulas are those of `_tilt`, `_characteristic` and `_probability` of `kofn.counts`, which derive them. Otherwise:
one count is the interval low = high; nothing is ranked, but Newton's method on the log-odds of the mean is held in a
bracket, which is halved where it would leave it, for as many steps as a bag needs; of the frequencies the first
FREQUENCIES are summed, those beyond the cut of `_characteristic` among them, since they add nothing.

The compiler and the interpreter take two dialects; this is what both take. Constants are small whole numbers or made as
float64, since others would be float32 in silence. There is no log1p, no break, no variable that begins in a branch.
"""

import triton
import triton.language as tl

STEPS = tl.constexpr(1200)  # bisection alone goes through every float64 in so many; Newton needs 2 to 17
TWO_PI = tl.constexpr(6.283185307179586)
LEAST = tl.constexpr(1e-18)  # of a variance: rows whose probabilities are all 0 or 1 have none


@triton.jit
def _multiply(a, b, c, d):
    """(a + ib) (c + id)"""
    return a * c - b * d, a * d + b * c


@triton.jit
def _product(real, imaginary, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The product over the rows of a matrix, in pairs: `tl.reduce` would be a Python loop in the interpreter."""
    for level in tl.static_range(1, 31):
        if ROWS >> level:
            a, c = tl.split(tl.permute(tl.reshape(real, [ROWS >> level, 2, COLUMNS]), [0, 2, 1]))
            b, d = tl.split(tl.permute(tl.reshape(imaginary, [ROWS >> level, 2, COLUMNS]), [0, 2, 1]))
            real, imaginary = _multiply(a, b, c, d)
    return tl.reshape(real, [COLUMNS]), tl.reshape(imaginary, [COLUMNS])


@triton.jit
def _sides(x):
    """sigmoid(x) and sigmoid(-x), each with all its digits."""
    e = tl.exp(-tl.abs(x))
    large = 1.0 / (1.0 + e)
    return tl.where(x >= 0, large, e * large), tl.where(x >= 0, e * large, large)


@triton.jit
def _softplus_of_minus(a):
    """log(1 + e^-a), a >= 0, with all its digits: log(u) y / (u - 1) for u = 1 + y as it is rounded (Kahan)."""
    y = tl.exp(-a)
    u = 1.0 + y
    rest = u - 1.0
    return tl.where(rest == 0, y, tl.log(u) * (y / tl.where(rest == 0, 1.0, rest)))


@triton.jit
def _block(x_ptr, start, j, n, BLOCK: tl.constexpr):
    """Some logits of a bag as they are and, z, with -inf for those that are certain or not there; which of them are."""
    k = j + tl.arange(0, BLOCK)
    inside = k < n
    x = tl.load(x_ptr + start + k, mask=inside, other=float("-inf")).to(tl.float64)
    z = tl.where(x == float("inf"), float("-inf"), x)
    return x, z, z != float("-inf"), inside


@triton.jit(do_not_specialize=["length"])
def interval_kernel(
    x_ptr,  # logits, one bag after the other: float32 or float64
    offsets_ptr,  # (b + 1,) int64; not read unless RAGGED
    length,  # of every bag, unless RAGGED
    low_ptr,  # (b,) int64
    high_ptr,
    value_ptr,  # (b,) of the logits' dtype
    gradient_ptr,  # of the logits' shape; not written unless GRADIENT
    RAGGED: tl.constexpr,
    GRADIENT: tl.constexpr,
    ONE: tl.constexpr,  # low is high
    FREQUENCIES: tl.constexpr,  # a power of two, above every cut: 32 for one count, 64 for an interval
    BLOCK: tl.constexpr,  # instances at a time, a power of two
):
    bag = tl.program_id(0).to(tl.int64)
    if RAGGED:
        start = tl.load(offsets_ptr + bag)
        n = tl.load(offsets_ptr + bag + 1) - start
    else:
        start = bag * length
        n = length.to(tl.int64)

    # What is certain is taken out; the mean and the extremes of the rest.
    sure_v = tl.zeros([BLOCK], tl.int64)
    size_v = tl.zeros([BLOCK], tl.int64)
    nan_v = tl.zeros([BLOCK], tl.int64)
    mean_v = tl.zeros([BLOCK], tl.float64)
    least_v = tl.full([BLOCK], float("inf"), tl.float64)
    most_v = tl.full([BLOCK], float("-inf"), tl.float64)
    for j in range(0, n, BLOCK):
        x, z, present, inside = _block(x_ptr, start, j, n, BLOCK)
        p, q = _sides(z)
        sure_v += (x == float("inf")).to(tl.int64)
        size_v += present.to(tl.int64)
        nan_v += (x != x).to(tl.int64)
        mean_v += p
        least_v = tl.where(present & (z < least_v), z, least_v)
        most_v = tl.where(present & (z > most_v), z, most_v)
    sure = tl.sum(sure_v, 0)
    size = tl.sum(size_v, 0)
    broken = tl.sum(nan_v, 0) > 0
    mean = tl.sum(mean_v, 0)
    real_size = size.to(tl.float64)
    low = tl.load(low_ptr + bag)
    high = tl.load(high_ptr + bag)
    low = tl.maximum(tl.maximum(low, -1) - sure, 0)
    high = tl.minimum(tl.maximum(high, -1) - sure, size)
    impossible = low > high
    every = (low == 0) & (high == size)  # the interval says nothing
    edge = (high == 0) | (low == size)  # it says all
    work = (impossible | every | edge | broken) == 0

    # The tilt to the likeliest count of the interval: none where that is the mean.
    real_low = low.to(tl.float64)
    real_high = high.to(tl.float64)
    target = tl.minimum(tl.maximum(mean, real_low), real_high)
    tilted = work & (target != mean)
    target = tl.where(work, target, mean)
    odds = tl.log(tl.where(tilted, target / tl.where(tilted, real_size - target, 1.0), 1.0))
    left = tl.where(tilted, odds - tl.max(most_v, 0), 0.0)
    right = tl.where(tilted, odds - tl.min(least_v, 0), 0.0)
    t = tl.where((left < 0) & (right > 0), 0.0, left * 0.5 + right * 0.5)
    variance = mean * 0.0
    unsolved = work
    step = 0
    while unsolved & (step < STEPS):
        mean_v = tl.zeros([BLOCK], tl.float64)
        variance_v = tl.zeros([BLOCK], tl.float64)
        for j in range(0, n, BLOCK):
            x, z, present, inside = _block(x_ptr, start, j, n, BLOCK)
            p, q = _sides(z + t)
            mean_v += p
            variance_v += p * q
        mean = tl.sum(mean_v, 0)
        variance = tl.sum(variance_v, 0)
        gap = mean - target
        unsolved = (gap * gap > variance + tl.full([], LEAST, tl.float64)) & (left < right)
        if unsolved:
            left = tl.where(gap > 0, left, t)
            right = tl.where(gap > 0, t, right)
            room = mean * (real_size - mean)
            newton = t + (odds - tl.log(mean / (real_size - mean))) * room / (real_size * variance)
            t = tl.where((left < newton) & (newton < right), newton, left * 0.5 + right * 0.5)
        step += 1

    # The counts that are shown, and enough points that no other one is mistaken for them.
    reach = (40.0 + tl.sqrt(1600.0 + 720.0 * variance)) / 3.0
    first = low
    last = high
    if ONE:
        points = reach + (1.0 + tl.sqrt(1.0 + 18.0 * variance)) / 3.0
    else:
        points = reach + reach
        first = tl.maximum(low, tl.ceil(mean - reach).to(tl.int64))
        last = tl.minimum(high, tl.floor(mean + reach).to(tl.int64))
    points = tl.minimum(tl.ceil(points), real_size + 1.0).to(tl.int64)
    points = points + 1 - points % 2  # odd: no factor of an instance is ever 0
    real_points = points.to(tl.float64)
    angle_step = tl.full([], TWO_PI, tl.float64) / real_points
    m = tl.arange(0, FREQUENCIES).to(tl.int64)
    angle = m.to(tl.float64) * angle_step
    cosine = tl.cos(angle)
    sine = tl.sin(angle)
    half = tl.cos(angle * 0.5)
    share = ((m <= points // 2).to(tl.float64) + ((m > 0) & (m <= points // 2)).to(tl.float64)) / real_points

    # The characteristic function without the turns of instances with p > q, and what undoes the tilt.
    real = tl.full([BLOCK, FREQUENCIES], 1.0, tl.float64)
    imaginary = tl.zeros([BLOCK, FREQUENCIES], tl.float64)
    turned_v = tl.zeros([BLOCK], tl.int64)
    positive_v = tl.zeros([BLOCK], tl.int64)
    change_v = tl.zeros([BLOCK], tl.float64)
    closed_v = tl.zeros([BLOCK], tl.float64)
    for j in range(0, n, BLOCK):
        x, z, present, inside = _block(x_ptr, start, j, n, BLOCK)
        p, q = _sides(z + t)
        small = tl.minimum(p, q)
        turning = tl.where(p > q, -small, small)
        factor = tl.maximum(p, q)[:, None] + small[:, None] * cosine[None, :]
        real, imaginary = _multiply(real, imaginary, factor, turning[:, None] * sine[None, :])
        turned_v += (p > q).to(tl.int64)
        z = tl.where(present, z, 0.0)
        fixed = _softplus_of_minus(tl.abs(z))
        side = tl.where(z > 0, z + t, -(z + t))  # log sigmoid(side) = min(side, 0) - log(1 + e^-|side|)
        change = -tl.minimum(side, 0.0) - fixed + _softplus_of_minus(tl.abs(side))
        positive_v += (present & (z > 0)).to(tl.int64)
        change_v += tl.where(present, change, 0.0)
        closed_v += tl.where(present, tl.minimum(tl.where(high == 0, -z, z), 0.0) - fixed, 0.0)
    real, imaginary = _product(real, imaginary, BLOCK, FREQUENCIES)

    # What the shown counts weigh, against the end that the tilt leans to; as waves, they make a spectrum.
    anchor = tl.where(t > 0, low, high)
    waves_real = tl.zeros([FREQUENCIES], tl.float64)
    waves_imaginary = tl.zeros([FREQUENCIES], tl.float64)
    turned = tl.sum(turned_v, 0)
    COUNTS: tl.constexpr = 1 if ONE else BLOCK
    for j in range(0, tl.where(work, last - first + 1, 0), COUNTS):
        count = first + j + tl.arange(0, COUNTS)
        weight = tl.exp(tl.minimum(-t * (count - anchor).to(tl.float64), 0.0))
        weight = tl.where(count <= last, weight, 0.0)
        turns = ((count - turned)[:, None] * m[None, :]) % points  # in integers: no digit of the angle is lost
        turn = turns.to(tl.float64) * angle_step
        waves_real += tl.sum(weight[:, None] * tl.cos(turn), 0)
        waves_imaginary -= tl.sum(weight[:, None] * tl.sin(turn), 0)
    real, imaginary = _multiply(real, imaginary, waves_real * share, waves_imaginary * share)
    total = tl.sum(real, 0)

    value = tl.log(tl.where(work, total, 1.0)) + tl.sum(change_v, 0)
    value = value + t * (tl.sum(positive_v, 0) - anchor).to(tl.float64)
    value = tl.minimum(value, 0.0)  # rounding only
    value = tl.where(edge, tl.sum(closed_v, 0), value)
    value = tl.where(every, 0.0, value)
    value = tl.where(impossible, float("-inf"), value)
    lost = broken | unsolved
    value = tl.where(lost, float("nan"), value)
    tl.store(value_ptr + bag, value.to(value_ptr.dtype.element_ty))

    if GRADIENT:
        scale = 1.0 / tl.where(work, total, 1.0)
        beside = (real * cosine - imaginary * sine) * scale
        plain = real * scale
        for j in range(0, n, BLOCK):
            x, z, present, inside = _block(x_ptr, start, j, n, BLOCK)
            p, q = _sides(z + t)
            apart = (q - p) * (q - p)
            inverse = 1.0 / (apart[:, None] + (4.0 * p * q)[:, None] * (half * half)[None, :])
            posterior = p * q * tl.sum(inverse * beside[None, :], 1) + p * p * tl.sum(inverse * plain[None, :], 1)
            posterior = tl.minimum(tl.maximum(posterior, 0.0), 1.0)  # rounding only
            posterior = tl.where(edge, (high > 0).to(tl.float64), posterior)
            p, q = _sides(z)
            gradient = tl.where(present & (impossible == 0) & (every == 0), posterior - p, 0.0)
            gradient = tl.where(lost, float("nan"), gradient)
            k = j + tl.arange(0, BLOCK)
            tl.store(gradient_ptr + start + k, gradient.to(gradient_ptr.dtype.element_ty), mask=inside)
