package org.tampu.bulk;

import java.util.List;

/**
 * The result of a transfer at one receiver.
 *
 * @param source stable name of the receiver
 * @param address its address
 * @param cut the reason for which the sender has ended its part, or null
 * @param acknowledged number of bytes that it has acknowledged
 * @param lost the ranges that it misses, in order
 * @param faults the faults that it has reported
 * @param why the reason in words; empty if it has everything
 */
public record BulkDelivery(String source, String address, Outcome outcome, Cut cut, long acknowledged, List<LostRange> lost,
        List<BulkFault> faults, String why) {
    /** The results. */
    public enum Outcome {
        /** The receiver has everything. */
        COMPLETE,
        /** The receiver has refused the transfer; {@code why} has its words. */
        REFUSED,
        /** The sender has cut it, because it was slow. */
        CUT,
        /** The receiver is gone: it has left, died, or was away for too long. */
        GONE,
        /** The receiver misses ranges. */
        INCOMPLETE
    }

    /** The reasons for a cut. */
    public enum Cut {
        /** The receiver took nothing for the time of the {@link SlowPolicy}. */
        SEND_TIMEOUT,
        /** The receiver acknowledged nothing for {@code ackWait}, at a start or a stop. */
        ACK_TIMEOUT,
        /** The receiver made progress, but delayed others for the time of the {@link SlowPolicy}. */
        SLOW,
        /** The connection was broken for longer than {@code resume}. */
        AWAY,
        /** The receiver has left the bus. */
        LEFT,
        /** The receiver missed too many starts and ends to be sent all of them. */
        TOO_FAR_BEHIND
    }

    /** Returns whether the receiver has everything. */
    public boolean isComplete() {
        return outcome == Outcome.COMPLETE;
    }

    @Override
    public String toString() {
        return (source.isEmpty() ? address : source + " at " + address) + ": " + (why.isEmpty() ? outcome : outcome + ", " + why);
    }
}
