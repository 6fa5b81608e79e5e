package org.tampu.internal.bulk;

/** Limit of bytes a second. A value that returns the time to sleep. */
public final class Throttle {
    /** Lead of a sender over its rate, so that sleeps are long enough to be exact. */
    private static final long BURST = 5_000_000;
    /** Delay that a sender may make up. A longer one was a pause. */
    private static final long ARREARS = 50_000_000;

    private final double rate;
    private boolean isRunning;
    private long due;

    /** Makes a limiter; 0 means no limit. */
    public Throttle(double rate) {
        this.rate = rate;
    }

    /** Accounts for bytes sent at {@code now}; returns the ns to sleep before the next. */
    public long sent(int bytes, long now) {
        if (rate <= 0) {
            return 0;
        }
        long from = isRunning && due + ARREARS - now >= 0 ? due : now;
        isRunning = true;
        due = from + (long) (bytes / rate * 1e9);
        return due - now > BURST ? due - now : 0;
    }
}
