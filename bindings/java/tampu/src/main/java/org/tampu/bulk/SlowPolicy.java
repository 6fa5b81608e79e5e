package org.tampu.bulk;

import java.time.Duration;

/**
 * Treatment of a slow receiver.
 *
 * @param limit the longest time that a receiver may make no progress, or delay others; null to wait as long as its
 *     connection lives
 */
public record SlowPolicy(Duration limit) {
    /** Checks the time. */
    public SlowPolicy {
        if (limit != null && (limit.isNegative() || limit.isZero())) {
            throw new IllegalArgumentException("a slow receiver needs a time above 0, not " + limit);
        }
    }

    /** Returns the policy that waits, as long as the receiver's connection lives. */
    public static SlowPolicy waits() {
        return new SlowPolicy(null);
    }

    /**
     * Returns the policy that cuts a receiver after this time. It gets no more of the transfer, and takes part in the
     * next one. Both ends get the reason.
     */
    public static SlowPolicy cutAfter(Duration time) {
        return new SlowPolicy(java.util.Objects.requireNonNull(time, "time"));
    }
}
