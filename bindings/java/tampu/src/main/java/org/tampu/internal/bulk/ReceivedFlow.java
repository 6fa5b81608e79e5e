package org.tampu.internal.bulk;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.tampu.bulk.BulkHandler;
import org.tampu.bulk.GiveUp;
import org.tampu.bulk.LostRange;

/** A receiver's flow: passes frames through the {@link Machine} to the handler, and returns the answers. */
public final class ReceivedFlow {
    /** A frame for the sender. */
    public record Answer(BulkFrame header, ByteBuffer payload) {
        /** Makes one with a checked payload. */
        public static Answer of(int kind, int session, long transfer, long sequence, long offset, ByteBuffer payload) {
            return new Answer(BulkFrame.checked(kind, session, transfer, sequence, offset, payload), payload);
        }
    }

    /** A payload that was changed on its way: the connection is of no more use. */
    public static final class Changed extends Exception {
        private static final long serialVersionUID = 1;

        Changed() {
            super("a payload was changed on its way");
        }
    }

    private static final int CALLBACK_FAILED = 5;
    private static final int GAVE_UP = 8;
    private static final int CHANGED = 3;
    private static final int CAUSE_SENDER_GONE = 4;
    private static final int CAUSE_CHANGED = 5;
    private static final int CAUSE_GIVEN_UP = 6;
    /** Damaged arrivals of a payload before it counts as lost. */
    private static final int TIMES = 3;
    /** Ranges that a transfer remembers. */
    private static final int RANGES = 1024;
    private static final long ACK_NANOS = 100_000_000;
    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

    private final BulkHandler handler;
    private final Machine machine = new Machine();
    private String source = "";
    private String address = "";
    private byte[] sender = new byte[0];
    private int session;
    private long ackEvery = 1 << 20;
    private long unacknowledged;
    private long acknowledgedAt = System.nanoTime();
    private long changedSequence;
    private int changedTimes;
    private long told;
    private final List<Answer> toldAgain = new ArrayList<>();
    /** The transfer under way. */
    private long bytes;
    private boolean givenUp;
    private List<LostRange> lost = new ArrayList<>();
    private Map<Integer, String> faults = new LinkedHashMap<>();
    /** Counters of all transfers. */
    private final AtomicLong allBytes = new AtomicLong();
    private final AtomicLong allLost = new AtomicLong();
    private final AtomicLong transfers = new AtomicLong();

    public ReceivedFlow(BulkHandler handler) {
        this.handler = handler;
    }

    /** Returns the counters of all transfers. */
    public Map<String, Object> counters() {
        Map<String, Object> counters = new LinkedHashMap<>();
        counters.put("bytes", allBytes.get());
        counters.put("lost_bytes", allLost.get());
        counters.put("transfers", transfers.get());
        return counters;
    }

    public Machine machine() {
        return machine;
    }

    /** Takes a sender. Another one than before ends the transfer of that one. */
    public void begin(byte[] incarnation, int ofSession, String ofSource, String ofAddress, long wantedAckEvery) {
        if (!isOf(incarnation, ofSession)) {
            giveUp();
            toldAgain.clear();
            told = 0;
            changedTimes = 0;
        }
        sender = incarnation;
        session = ofSession;
        source = ofSource;
        address = ofAddress;
        ackEvery = Math.min(Math.max(wantedAckEvery, 1 << 12), 1 << 30);
    }

    /** Returns whether the flow is that of this sender. */
    public boolean isOf(byte[] incarnation, int ofSession) {
        return session == ofSession && java.util.Arrays.equals(sender, incarnation);
    }

    /** Returns the reports about the last transfer: the connection before may have ended with them. */
    public List<Answer> again() {
        return List.copyOf(toldAgain);
    }

    /** Ends the running transfer, because its sender is gone for good. */
    public void giveUp() {
        LostRange range = machine.giveUp(CAUSE_SENDER_GONE);
        if (range != null) {
            lose(range, null, null);
            end(false, false, new ArrayList<>());
        }
    }

    /** Takes a frame. */
    public void take(BulkFrame frame, ByteBuffer payload, List<Answer> answers) throws Changed {
        if (!frame.fits(payload)) {
            changed(frame, answers);
            return;
        }
        Messages.Lost lostOf = frame.kind() == BulkFrame.LOST ? Messages.Lost.decode(payload) : null;
        Machine.Judged judged = machine.take(frame, lostOf);
        act(frame, payload, judged, answers);
        unacknowledged += frame.length();
        boolean ends = judged.verdict() != Machine.Verdict.DATA && judged.verdict() != Machine.Verdict.NOTHING;
        boolean isRepeated = judged.verdict() == Machine.Verdict.NOTHING && frame.kind() != BulkFrame.DATA;
        if (ends || isRepeated || frame.has(BulkFrame.ASK) || unacknowledged >= ackEvery
                || System.nanoTime() - acknowledgedAt >= ACK_NANOS) {
            unacknowledged = 0;
            acknowledgedAt = System.nanoTime();
            answers.add(new Answer(new BulkFrame(BulkFrame.ACK, 0, session, 0, machine.transfer(), machine.expected(), machine.offset(), 0),
                    NOTHING));
        }
    }

    private void changed(BulkFrame frame, List<Answer> answers) throws Changed {
        fault(CHANGED, "a payload was changed on its way", answers);
        changedTimes = changedSequence == frame.sequence() ? changedTimes + 1 : 1;
        changedSequence = frame.sequence();
        if (changedTimes < TIMES || frame.kind() != BulkFrame.DATA) {
            throw new Changed();
        }
        Messages.Lost range = new Messages.Lost(frame.sequence() + 1, frame.offset() + frame.length(), CAUSE_CHANGED);
        BulkFrame as = new BulkFrame(BulkFrame.LOST, 0, session, 0, frame.transfer(), frame.sequence(), frame.offset(), 0);
        act(frame, NOTHING, machine.take(as, range), answers);
    }

    private void act(BulkFrame frame, ByteBuffer payload, Machine.Judged judged, List<Answer> answers) {
        if (judged.lost() != null) {
            // The sender knows the ranges that it left out.
            lose(judged.lost(), frame.kind() == BulkFrame.LOST ? null : frame, answers);
        }
        if (judged.fault() != 0) {
            fault(judged.fault(), "fault " + judged.fault() + " at frame " + frame.sequence() + " of transfer " + frame.transfer(), answers);
        }
        if (judged.breaks()) {
            end(false, false, answers);
        }
        switch (judged.verdict()) {
            case START -> start(frame, payload, answers);
            case DATA -> data(frame, payload, judged.skip(), answers);
            case STOP -> end(true, false, answers);
            case RESET -> end(false, true, answers);
            case NOTHING -> { }
        }
    }

    private void lose(LostRange range, BulkFrame found, List<Answer> answers) {
        add(range);
        if (found != null && range.to() >= 0) {
            ByteBuffer payload = new Messages.Lost(found.sequence(), range.to(), range.cause()).encode();
            Answer answer = Answer.of(BulkFrame.LOST, session, found.transfer(), found.sequence() - range.frames(), range.from(), payload);
            answers.add(answer);
            tellAgain(answer);
        }
        handler.lost(range);
    }

    private void fault(int kind, String text, List<Answer> answers) {
        if (faults.putIfAbsent(kind, text) == null) {
            Answer answer = Answer.of(BulkFrame.FAULT, session, machine.transfer(), 0, 0, new Messages.Fault(kind, 1, text).encode());
            answers.add(answer);
            tellAgain(answer);
        }
    }

    private void tellAgain(Answer answer) {
        if (answer.header().transfer() == told && toldAgain.size() < 64) {
            toldAgain.add(answer);
        }
    }

    private interface Call {
        void run() throws Exception;
    }

    private void call(List<Answer> answers, Call call) {
        try {
            call.run();
        } catch (GiveUp refused) {
            givenUp = true;
            fault(CALLBACK_FAILED, refused.getMessage(), answers);
            fault(GAVE_UP, refused.getMessage(), answers);
        } catch (Exception failed) {
            fault(CALLBACK_FAILED, failed.toString(), answers);
        }
    }

    private void start(BulkFrame frame, ByteBuffer payload, List<Answer> answers) {
        transfers.incrementAndGet();
        bytes = 0;
        givenUp = false;
        lost = new ArrayList<>();
        faults = new LinkedHashMap<>();
        told = frame.transfer();
        toldAgain.clear();
        byte[] parameter = new byte[payload.remaining()];
        payload.duplicate().get(parameter);
        call(answers, () -> machine.has(Math.max(0, handler.start(new BulkHandler.Start(frame.transfer(), source, address, parameter)))));
    }

    private void data(BulkFrame frame, ByteBuffer payload, int skip, List<Answer> answers) {
        ByteBuffer rest = payload.duplicate().position(payload.position() + skip);
        if (skip > 0 && !rest.hasRemaining()) {
            return;
        }
        if (givenUp) {
            add(new LostRange(frame.offset() + skip, frame.offset() + frame.length(), 1, CAUSE_GIVEN_UP));
            return;
        }
        bytes += rest.remaining();
        allBytes.addAndGet(rest.remaining());
        call(answers, () -> handler.data(rest, frame.offset() + skip, frame.has(BulkFrame.END_OF_BLOCK)));
    }

    private void end(boolean stopped, boolean reset, List<Answer> answers) {
        boolean complete = stopped && lost.isEmpty() && !givenUp;
        var end = new BulkHandler.End(machine.transfer(), complete, stopped, bytes, List.copyOf(lost), List.copyOf(faults.values()));
        call(answers, () -> {
            if (reset) {
                handler.reset(end);
            } else {
                handler.stop(end);
            }
        });
    }

    /** Remembers a loss; adjacent ranges of one cause are joined, and beyond a bound the last one covers the rest. */
    private void add(LostRange range) {
        allLost.addAndGet(range.bytes());
        LostRange last = lost.isEmpty() ? null : lost.get(lost.size() - 1);
        if (last != null && (lost.size() == RANGES || last.to() == range.from() && last.cause() == range.cause())) {
            lost.set(lost.size() - 1, new LostRange(last.from(), range.to(), last.frames() + range.frames(), last.cause()));
        } else {
            lost.add(range);
        }
    }
}
