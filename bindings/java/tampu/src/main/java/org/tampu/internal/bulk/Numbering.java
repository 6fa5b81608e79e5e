package org.tampu.internal.bulk;

import java.nio.ByteBuffer;
import org.tampu.bulk.BulkException;

/** Order of calls and numbers of frames of a sent flow. No I/O. */
public final class Numbering {
    /** The phases of a flow. */
    public enum Phase { READY, DATA, STOPPED }

    private final int session;
    private final int longest;
    private int frame;
    private Phase phase = Phase.READY;
    private long transfer;
    private long sequence = 1;
    private long offset;

    /** Begins with frames of at most this length. */
    public Numbering(int session, int longest) {
        this.session = session;
        this.longest = longest;
        this.frame = longest;
    }

    /** Returns the phase of the flow. */
    public Phase phase() {
        return phase;
    }

    /** Returns the number of the running transfer, or of the last one. */
    public long transfer() {
        return transfer;
    }

    /** Returns the amount of its data so far. */
    public long offset() {
        return offset;
    }

    /** Returns the longest payload at present. */
    public int frame() {
        return frame;
    }

    /** Sets the length that the receivers accept. */
    public void fit(int accepted) {
        frame = Math.max(1, Math.min(longest, accepted));
    }

    /** Fails unless a transfer with such a parameter may begin. */
    public void mayStart(int length) throws BulkException {
        if (phase == Phase.DATA) {
            throw order("start", "a transfer is running");
        }
        int limit = Math.max(frame, BulkFrame.CONTROL);
        if (length > limit) {
            throw new BulkException(BulkException.Kind.PARAMETER_TOO_LONG, "a parameter of " + length + " bytes; " + limit + " are allowed");
        }
    }

    /** Fails unless data may be sent. */
    public void maySend(String call) throws BulkException {
        if (phase != Phase.DATA) {
            throw order(call, "no transfer is running");
        }
    }

    private static BulkException order(String call, String why) {
        return new BulkException(BulkException.Kind.WRONG_ORDER, "'" + call + "' is not possible: " + why);
    }

    private BulkFrame next(int kind, int flags, ByteBuffer payload, boolean checked) {
        return BulkFrame.of(kind, flags, session, transfer, sequence++, offset, payload, checked);
    }

    /** Begins a transfer. */
    public BulkFrame start(ByteBuffer parameter, boolean checked) throws BulkException {
        mayStart(parameter.remaining());
        phase = Phase.DATA;
        transfer++;
        offset = 0;
        return next(BulkFrame.START, 0, parameter, checked);
    }

    /** Sets the first byte of the data, before any data. */
    public void beginAt(long first) throws BulkException {
        maySend("beginAt");
        if (offset != 0) {
            throw order("beginAt", "data was sent already");
        }
        offset = first;
    }

    /** Numbers a piece of data, whose checksum is that of {@code summed}. */
    public BulkFrame data(int flags, ByteBuffer payload, BulkFrame summed) throws BulkException {
        maySend("send");
        BulkFrame header = new BulkFrame(BulkFrame.DATA, flags | summed.flags(), session, payload.remaining(), transfer, sequence++, offset,
                summed.sum());
        offset += payload.remaining();
        return header;
    }

    /** Ends the transfer. */
    public BulkFrame stop(boolean checked) throws BulkException {
        maySend("stop");
        phase = Phase.STOPPED;
        return next(BulkFrame.STOP, 0, ByteBuffer.allocate(0), checked);
    }

    /** Gives the transfer up; always allowed. */
    public BulkFrame reset() {
        phase = Phase.READY;
        return next(BulkFrame.RESET, 0, ByteBuffer.allocate(0), false);
    }
}
