/* kofn: the exact distribution of S, the number of positives among n independent instances with given logits.
 *
 * A plain C interface: pointers in, pointers out, nothing kept between calls but a thread's scratch memory. Every
 * function may be called from several threads at once and in forked children. All return KOFN_OK or one of the codes
 * below; on an error the outputs hold nothing useful.
 *
 * Bags.  Bag j is logits[offsets[j]] .. logits[offsets[j + 1] - 1]; without offsets (NULL) all bags have n instances.
 *        offsets[0] is 0. m is the number of instances of all bags. A logit of +inf is a certain positive, -inf a
 *        certain negative or an instance that is not there; a NaN makes the answers of its bag NaN.
 * dtype  of `logits`, and of what an event gives back: KOFN_FLOAT32 or KOFN_FLOAT64. All work is done in float64.
 * level  0: the best instruction set of this machine; otherwise one bit of kofn_levels().
 * threads  1: serial. More: that many threads share the bags, if there is work for more than about 2 ms, and kofn_event
 *          the instances of a bag of more than 131,072, if it asks for neither copies nor a random effect. How many
 * there are changes no digit of any answer.
 */
#ifndef KOFN_H
#define KOFN_H

#include <stdint.h>

#if defined(_WIN32)
#define KOFN_API __declspec(dllexport)
#else
#define KOFN_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { KOFN_FLOAT32 = 0, KOFN_FLOAT64 = 1 };
enum { KOFN_BASELINE = 1, KOFN_AVX2 = 2, KOFN_AVX512 = 4 };
enum {
    KOFN_OK = 0,
    KOFN_BAD_ARGUMENT = 1,
    KOFN_NO_MEMORY = 2,
    KOFN_NO_SUCH_LEVEL = 3,
    KOFN_FAILED = 4,
    KOFN_LARGE_LOGITS =
        5 /* of kofn_event and kofn_all_counts: some finite logit is above 1e5 in size; answers have fewer digits */
};

/* log P(A) of the event A = {low <= S <= high} of each bag, its derivatives, and what it says of the instances.
 *
 * copies      m, at least 0, or NULL: row i stands for copies_i alike people, of independent labels; NULL: one each. 0:
 * the row is not there. S counts people. A call costs what rows cost, however many people they stand for (up to 2^40 in
 * a bag). low, high   b integers each; high may be NULL: one count, high = low. sigma       b standard deviations, or
 * NULL: of a random effect, a normal shift that all logits of the bag have in common. Only for one count, high NULL or
 * equal to low. 0: independent labels. weight, total   total is NULL, or one number of `dtype`: weight * sum_j value_j.
 * Then gradient and by_sigma are those of total. value       b, or NULL where there is a total. -inf where no allowed
 * count is possible, 0 where all are. gradient    m, or NULL: d value / d logit_i = copies_i (P(y_i = 1 | A) - P(y_i =
 * 1)); with a random effect u, less E[P(y_i = 1 | u) | A] instead. by_sigma    b, or NULL: d value / d sigma. posterior
 * m, or NULL: P(y_i = 1 | A) of one of the people of row i; P(y_i = 1), without a random effect, where value is -inf
 *             and where copies are 0.
 */
KOFN_API int kofn_event(int dtype, const void* logits, const int64_t* copies, const int64_t* offsets, int64_t n,
                        int64_t b, const int64_t* low, const int64_t* high, const double* sigma, double weight,
                        void* total, void* value, void* gradient, double* by_sigma, double* posterior, int level,
                        int threads);

/* What every process of a team gives goes to all of them: `bytes` of each, in the order of the processes. Not 0: it
 * failed. */
typedef int (*kofn_gather)(const void* mine, int64_t bytes, void* all);

/* kofn_event of bags whose instances lie on several processes, each of which makes this call with its own of each bag,
 * and the same b, low and high. Value is the same on all; gradient and posterior are those of a process's own
 * instances.
 *
 * gather      is called some five times for each bag, at the same places by all processes. If it fails: KOFN_FAILED.
 */
KOFN_API int kofn_shared_event(int dtype, const void* logits, const int64_t* offsets, int64_t n, int64_t b,
                               const int64_t* low, const int64_t* high, void* value, void* gradient, double* posterior,
                               int64_t processes, kofn_gather gather, int level, int threads);

/* gradient times its bag's number: the backward pass of kofn_event, m numbers.
 *
 * gradient, scale, out   all of `dtype`: m, b and m numbers.
 */
KOFN_API int kofn_scale(int dtype, const void* gradient, const int64_t* offsets, int64_t n, int64_t b,
                        const void* scale, void* out);

/* log P(S = s) for every s of each bag.
 *
 * value  m + b: the distribution of bag j starts at offsets[j] + j and has one more entry than the bag.
 * tilts  the same layout, or NULL: entry k is the tilt with which count k of the UNDECIDED instances (without
 *        those of infinite logit) was computed; NaN where no tilted window was needed.
 */
KOFN_API int kofn_all_counts(int dtype, const void* logits, const int64_t* offsets, int64_t n, int64_t b, double* value,
                             double* tilts, int level, int threads);

/* The gradient of sum_s weights_s log P(S = s) by the logits: m numbers.
 *
 * tilts    as kofn_all_counts wrote them, for the same logits.
 * weights  the layout of value. Those of impossible counts are ignored.
 */
KOFN_API int kofn_all_counts_gradient(int dtype, const void* logits, const int64_t* offsets, int64_t n, int64_t b,
                                      const double* tilts, const double* weights, double* gradient, int level,
                                      int threads);

/* log P(K = k) of each bag for counts k of several classes, and what they say of the instances.
 *
 * Each instance has `classes` logits, one after the other, and label c with probability softmax(logits)_c; one with
 * -inf in all of them is not there. Counts that do not sum to the bag's size are impossible.
 *
 * counts      b * classes.
 * value       b. -inf where the counts are impossible.
 * gradient    m * classes, or NULL: d value / d logit = P(y_i = c | K = k) - P(y_i = c).
 * posterior   m * classes, or NULL: P(y_i = c | K = k); P(y_i = c) where value is -inf.
 */
KOFN_API int kofn_class_counts(int dtype, const void* logits, const int64_t* offsets, int64_t n, int64_t b,
                               int64_t classes, const int64_t* counts, void* value, void* gradient, double* posterior,
                               int level, int threads);

/* Goes up with every change of a signature above, so that a caller can refuse a library that it was not written for. */
enum { KOFN_INTERFACE = 9 };
KOFN_API int kofn_interface(void);

/* The instruction sets that this build has and this machine can run, as a mask. */
KOFN_API int kofn_levels(void);

#ifdef __cplusplus
}
#endif

#endif
