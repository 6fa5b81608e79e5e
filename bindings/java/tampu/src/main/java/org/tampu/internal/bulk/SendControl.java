package org.tampu.internal.bulk;

/** Control of a sent flow from outside: its rate, a pause and a stop. The flow's lock guards it. */
final class SendControl {
    private static final long SECOND = 1_000_000_000L;

    private double rate;
    private Throttle throttle;
    private boolean paused;
    /** True until the running transfer has ended. */
    private boolean cancelled;
    /** True while no transfer may begin. */
    private boolean halted;
    private long measuredFrom = System.nanoTime();
    private long measured;
    private double measuredRate;

    SendControl(double rate) {
        setRate(rate);
    }

    /** Sets the limit in bytes a second; 0 for none. */
    void setRate(double bytesPerSecond) {
        rate = bytesPerSecond;
        throttle = new Throttle(bytesPerSecond);
    }

    double rate() {
        return rate;
    }

    Throttle throttle() {
        return throttle;
    }

    boolean isPaused() {
        return paused;
    }

    void setPaused(boolean on) {
        paused = on;
    }

    boolean isCancelled() {
        return cancelled || halted;
    }

    void cancel() {
        cancelled = true;
    }

    /** Notes the end of the transfer. */
    void transferEnded() {
        cancelled = false;
    }

    void setHalted(boolean on) {
        halted = on;
        cancelled &= on;
    }

    /** Accounts for sent bytes. */
    void sent(long bytes, long now) {
        long passed = now - measuredFrom;
        if (passed >= SECOND) {
            measuredRate = passed < 2 * SECOND ? measured * 1e9 / passed : 0;
            measured = 0;
            measuredFrom = now;
        }
        measured += bytes;
    }

    /** Returns the bytes a second over about the last second. */
    double measuredRate(long now) {
        long passed = now - measuredFrom;
        return passed >= 2 * SECOND ? 0 : passed >= SECOND ? measured * 1e9 / passed : measuredRate;
    }
}
