package org.tampu.internal.ring;

import java.time.Instant;

/**
 * The clock of log calls, in ns of UTC.
 *
 * <p>Decision: the monotonic clock plus an offset that is taken anew every 10 ms. {@code System.nanoTime} is half as
 * expensive as the clock of UTC, and a step of UTC shows within those 10 ms. Each ring has its own.
 */
final class Clock {
    /** Age at which the offset is taken anew, in ns. */
    private static final long AGE = 10_000_000;
    /** A difference above it is a step of the system clock, in ns; a smaller one backwards is the noise of two readings. */
    private static final long STEP = 1_000_000;

    private long anchored = System.nanoTime() - AGE - 1;
    private long offset;
    private long last;

    /** Returns UTC in ns since 1970, from the system's clock. */
    static long utc() {
        return utc(Instant.now());
    }

    /** Returns this moment in ns since 1970. */
    public static long utc(Instant moment) {
        return moment.getEpochSecond() * 1_000_000_000L + moment.getNano();
    }

    /** Returns UTC in ns since 1970. It does not go back, unless the system clock is set back. */
    long now() {
        long monotonic = System.nanoTime();
        if (monotonic - anchored > AGE) {
            offset = utc() - monotonic;
            anchored = monotonic;
        }
        long now = monotonic + offset;
        if (now < last && last - now < STEP) {
            return last;
        }
        last = now;
        return now;
    }
}
