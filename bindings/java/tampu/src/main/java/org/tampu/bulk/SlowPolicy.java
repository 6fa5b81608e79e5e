package org.tampu.bulk;

import java.time.Duration;

/**
 * Treatment of a slow receiver.
 *
 * @param limit the longest time that a receiver may make no progress, or delay others; null to wait as long as its
 *     connection lives
 * @param skips true to leave data out for such a receiver, false to cut it
 */
public record SlowPolicy(Duration limit, boolean skips) {
    /** Checks the time. */
    public SlowPolicy {
        if (limit != null && (limit.isNegative() || limit.isZero())) {
            throw new IllegalArgumentException("a slow receiver needs a time above 0, not " + limit);
        }
        if (limit == null && skips) {
            throw new IllegalArgumentException("data is left out after a time: give one");
        }
    }

    /** Returns the policy that waits, as long as the receiver's connection lives. */
    public static SlowPolicy waits() {
        return new SlowPolicy(null, false);
    }

    /**
     * Returns the policy that cuts a receiver after this time. It gets no more of the transfer, and takes part in the
     * next one. Both ends get the reason.
     */
    public static SlowPolicy cutAfter(Duration time) {
        return new SlowPolicy(java.util.Objects.requireNonNull(time, "time"), false);
    }

    /**
     * Returns the policy that leaves data out for a receiver after this time, until it has caught up. Both ends get the
     * missing ranges. Starts and ends of transfers are never left out.
     */
    public static SlowPolicy skipAfter(Duration time) {
        return new SlowPolicy(java.util.Objects.requireNonNull(time, "time"), true);
    }
}
