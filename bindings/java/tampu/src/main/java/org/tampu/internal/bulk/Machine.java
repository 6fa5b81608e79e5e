package org.tampu.internal.bulk;

import org.tampu.bulk.LostRange;

/**
 * A receiver's flow as a value: frames go in, their meaning comes out. No I/O.
 *
 * <p>For any input in any order: a transfer's parameter comes before its data, its end after all of them; each byte
 * between is delivered once, in order, or reported as lost; a transfer that has begun is ended.
 */
public final class Machine {
    /** Faults and causes of {@code spec/bulk.md}. */
    public static final int WRONG_ORDER = 1;
    public static final int MISSING_FRAMES = 2;
    public static final int GARBLED = 10;
    public static final int MISSING = 1;

    /** Treatment of a frame. */
    public enum Verdict { START, DATA, STOP, RESET, NOTHING }

    /**
     * Meaning of a frame. Its parts are reported in this order.
     *
     * @param lost data that is lost before it, or null
     * @param fault number of the frame's fault, or 0
     * @param breaks whether the running transfer ends before it, incompletely
     * @param skip bytes of the payload that are here already
     */
    public record Judged(LostRange lost, int fault, boolean breaks, Verdict verdict, int skip) {}

    private static final Judged NOTHING = new Judged(null, 0, false, Verdict.NOTHING, 0);

    private boolean running;
    private long transfer;
    /** Sequence of the next frame; 0 for any. */
    private long expected;
    /** Offset of the next byte; -1 until the first piece says where the data begins. */
    private long next = -1;
    /** Bytes that were here before the transfer. */
    private long from;

    /** Returns whether a transfer is under way. */
    public boolean isRunning() {
        return running;
    }

    /** Returns the running transfer, or the last one. */
    public long transfer() {
        return transfer;
    }

    /** Returns the expected frame; 0 before the first. */
    public long expected() {
        return expected;
    }

    /** Returns the number of bytes of the transfer that are here or have passed. */
    public long offset() {
        return Math.max(Math.max(next, 0), from);
    }

    /** Sets the number of bytes that are here of the transfer that has just begun. */
    public void has(long bytes) {
        from = bytes;
    }

    /** Judges a frame; {@code lost} is the payload of a Lost, else null. */
    public Judged take(BulkFrame frame, Messages.Lost lost) {
        return switch (frame.kind()) {
            case BulkFrame.RESET -> reset(frame);
            case BulkFrame.START, BulkFrame.DATA, BulkFrame.STOP -> {
                if (Long.compareUnsigned(frame.sequence(), expected) < 0) {
                    yield NOTHING;
                }
                if (frame.sequence() < 0 || frame.offset() < 0) {
                    yield wrong(GARBLED);
                }
                yield frame.kind() == BulkFrame.START ? start(frame) : frame.kind() == BulkFrame.DATA ? data(frame) : stop(frame);
            }
            case BulkFrame.LOST -> lost(frame, lost);
            default -> NOTHING;
        };
    }

    /** Ends the running transfer, because its sender is gone for good. Returns its loss, or null. */
    public LostRange giveUp(int cause) {
        LostRange lost = running ? new LostRange(offset(), -1, 0, cause) : null;
        running = false;
        transfer = 0;
        expected = 0;
        next = -1;
        from = 0;
        return lost;
    }

    private static Judged wrong(int fault) {
        return new Judged(null, fault, false, Verdict.NOTHING, 0);
    }

    private LostRange range(long to, long sequence, int cause) {
        return new LostRange(offset(), to, Math.max(0, sequence - expected), cause);
    }

    private Judged start(BulkFrame frame) {
        boolean broken = running;
        boolean missing = broken && frame.sequence() > expected;
        Judged judged = new Judged(broken ? range(-1, frame.sequence(), MISSING) : null,
                broken ? (missing ? MISSING_FRAMES : WRONG_ORDER) : 0, broken, Verdict.START, 0);
        running = true;
        transfer = frame.transfer();
        expected = frame.sequence() + 1;
        next = -1;
        from = 0;
        return judged;
    }

    private Judged data(BulkFrame frame) {
        if (!running || frame.transfer() != transfer) {
            return wrong(WRONG_ORDER);
        }
        boolean missing = frame.sequence() > expected;
        boolean isInPlace = next < 0 || (missing ? frame.offset() >= next : frame.offset() == next);
        if (!isInPlace || frame.offset() + frame.length() < 0) {
            return wrong(GARBLED);
        }
        LostRange lost = frame.offset() > offset() ? range(frame.offset(), frame.sequence(), MISSING) : null;
        int skip = (int) Math.min(Math.max(0, from - frame.offset()), frame.length());
        expected = frame.sequence() + 1;
        next = frame.offset() + frame.length();
        return new Judged(lost, missing ? MISSING_FRAMES : 0, false, Verdict.DATA, skip);
    }

    private Judged stop(BulkFrame frame) {
        if (!running || frame.transfer() != transfer) {
            return wrong(WRONG_ORDER);
        }
        boolean missing = frame.sequence() > expected;
        LostRange lost = frame.offset() > offset() ? range(frame.offset(), frame.sequence(), MISSING) : null;
        running = false;
        expected = frame.sequence() + 1;
        return new Judged(lost, missing ? MISSING_FRAMES : 0, false, Verdict.STOP, 0);
    }

    private Judged lost(BulkFrame frame, Messages.Lost lost) {
        if (lost == null || lost.nextSequence() < 0 || lost.nextOffset() < 0) {
            return wrong(GARBLED);
        }
        if (!running || frame.transfer() != transfer || lost.nextSequence() <= expected || lost.nextOffset() < Math.max(next, 0)) {
            return NOTHING;
        }
        LostRange range = lost.nextOffset() > offset() ? range(lost.nextOffset(), lost.nextSequence(), lost.cause()) : null;
        expected = lost.nextSequence();
        next = lost.nextOffset();
        return new Judged(range, 0, false, Verdict.NOTHING, 0);
    }

    private Judged reset(BulkFrame frame) {
        // A reset is matched by its transfer and not by its number: it overtakes frames that are no longer sent.
        if (!running || Long.compareUnsigned(frame.transfer(), transfer) < 0) {
            return NOTHING;
        }
        running = false;
        expected = Math.max(expected, frame.sequence() + 1);
        transfer = frame.transfer();
        next = -1;
        from = 0;
        return new Judged(null, 0, false, Verdict.RESET, 0);
    }
}
