package org.tampu.internal.bulk;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import org.tampu.bulk.BulkDelivery;
import org.tampu.bulk.BulkDelivery.Cut;
import org.tampu.bulk.BulkDelivery.Outcome;
import org.tampu.bulk.BulkFault;
import org.tampu.bulk.BulkTarget;
import org.tampu.bulk.LostRange;
import org.tampu.bulk.Protection;
import org.tampu.internal.bulk.SendWindow.Framed;

/**
 * A sender's state of one receiver of a flow: the sent and the acknowledged position, and the frames to send. The flow's
 * lock guards it.
 */
final class SendLink {
    /** The states of a receiver. */
    enum Status {
        /** It is not connected. */
        CONNECTING,
        /** It is connected, and takes part from the next start on. */
        WAITING,
        /** It gets the data. */
        LIVE,
        /** It is too far behind. The sender does not wait for it until it has caught up, and leaves data out. */
        LAGGING,
        /** Its connection broke, and frames are kept for a while. */
        BROKEN,
        /** It was cut. */
        CUT
    }

    private static final int GAVE_UP = 8;
    private static final int CAUSE_SLOW = 2;
    private static final int CAUSE_AWAY = 3;
    /** Most frames that wait for a receiver whose data is all left out. Beyond it the receiver is cut. */
    private static final int OWED = 256;
    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

    final BulkTarget target;
    /** Protection that it declares. */
    final Protection protection;
    /** Place where it gives passes, or null. */
    final PassOffice passes;
    String source = "";
    Status status = Status.CONNECTING;
    long since = System.nanoTime();
    String why = "";
    /** True while it refuses this sender. */
    boolean isRefused;
    Cut cut;
    private String cutWhy = "";
    /** Longest payload that it takes. */
    int frame = Integer.MAX_VALUE;
    Wire wire;
    /** The next frame to write. */
    long next;
    /** Frames to write before those of the window. */
    final ArrayDeque<Framed> owed = new ArrayDeque<>();
    /** Frames of {@code owed} that are being written. */
    final List<Framed> owedInFlight = new ArrayList<>();
    /** True while its thread writes. */
    boolean isWriting;
    /** First frame that is kept for it. */
    long hold;
    /** Sequence before which it has all frames. */
    long acked;
    /** Sequence before which it has acknowledged on a connection, after all earlier answers. A Welcome is no Ack. */
    long answered;
    long ackedBytes;
    /** Bytes of the transfer that it had at the start. */
    long from;
    long progress = System.nanoTime();
    /** Time for which others have waited for it. */
    long heldOthers;
    boolean holdsOthers;
    long lastWrite = System.nanoTime();
    /** Last transfer in which it took part. */
    long tookPart;
    boolean isRemoved;
    private Framed lastReset;
    private LostRanges lost = new LostRanges();
    private final TreeMap<Integer, BulkFault> faults = new TreeMap<>();

    SendLink(BulkTarget target, Protection protection, PassOffice passes) {
        this.passes = passes;
        this.target = target;
        this.protection = protection;
    }

    String name() {
        return source.isEmpty() ? target.address() : source + " at " + target.address();
    }

    /** Returns the reason for its state; that of a cut stays until it takes part again. */
    String reason() {
        return cut == null ? why : cutWhy;
    }

    /** Returns whether frames are kept for it. */
    boolean takesPart() {
        return sends() || status == Status.BROKEN;
    }

    /** Returns whether it is connected and gets frames of the window. */
    boolean sends() {
        return status == Status.LIVE || status == Status.LAGGING;
    }

    boolean isConnected() {
        return wire != null;
    }

    private void turn(Status to, String reason) {
        if (status != to) {
            since = System.nanoTime();
            isRefused = false;
        }
        status = to;
        why = reason;
    }

    /** Notes an attempt to connect that failed. */
    void failed(boolean refused, String reason) {
        if (status == Status.CONNECTING) {
            isRefused = refused;
        }
        why = reason;
    }

    /** Begins a transfer with this frame. */
    void start(long transfer, long sequence) {
        if (status == Status.WAITING) {
            next = sequence;
            hold = sequence;
            acked = sequence;
            answered = sequence;
            // Owed frames stay: they report that an older transfer was given up.
            turn(Status.LIVE, "");
        }
        if (takesPart()) {
            tookPart = transfer;
            cut = null;
            lost = new LostRanges();
            faults.clear();
            from = 0;
            ackedBytes = 0;
            heldOthers = 0;
            progress = System.nanoTime();
        }
    }

    /** Attaches a connection. The Welcome has the expected frame and byte. {@code reset} ends what an old transfer left. */
    void attach(Wire to, Messages.Welcome welcome, SendWindow window, BulkFrame reset) {
        long sequence = welcome.sequence();
        if (sequence == 0 && status == Status.BROKEN && window.get(hold) != null && window.get(hold).header().kind() == BulkFrame.START) {
            // The connection broke before its first start: the receiver has forgotten nothing.
            sequence = hold;
        }
        wire = to;
        source = welcome.source();
        frame = welcome.frame();
        lastWrite = System.nanoTime();
        progress = lastWrite;
        if (status == Status.BROKEN && sequence > 0) {
            acked = Math.max(acked, Math.min(sequence, window.end()));
            if (sequence < hold && owed.isEmpty() && lastReset != null && sequence <= lastReset.header().sequence()) {
                owed.add(lastReset);
            }
            next = Math.min(Math.max(sequence, Math.max(hold, window.first())), window.end());
            hold = next;
            // What it has already is not repeated.
            long has = sequence;
            owed.removeIf(framed -> framed.header().kind() != BulkFrame.RESET && end(framed) <= has);
            leaveUnderWay(sequence, welcome.offset(), window);
            turn(Status.LIVE, "");
        } else if (cut != null && sequence > 0) {
            // The receiver holds a transfer whose rest it will not get.
            owed.clear();
            if (tookPart == reset.transfer() && welcome.offset() < reset.offset()) {
                ByteBuffer payload = new Messages.Lost(reset.sequence() + 1, reset.offset(),
                        cut == Cut.AWAY ? CAUSE_AWAY : CAUSE_SLOW).encode();
                owed.add(Framed.of(BulkFrame.checked(BulkFrame.LOST, reset.session(), reset.transfer(), sequence, welcome.offset(),
                        payload), payload));
            }
            owed.add(Framed.of(reset, NOTHING));
            turn(Status.WAITING, "");
        } else {
            owed.clear();
            turn(Status.WAITING, status == Status.BROKEN ? "it has forgotten the transfer" : "");
        }
    }

    /** Returns the sequence behind a frame that it is owed. */
    private static long end(Framed framed) {
        return framed.header().kind() == BulkFrame.LOST ? Messages.Lost.decode(framed.bytes()).nextSequence() : framed.header().sequence() + 1;
    }

    /** Reports the frames that were under way when the connection broke, and were left out meanwhile. */
    private void leaveUnderWay(long sequence, long offset, SendWindow window) {
        Framed first = owed.isEmpty() ? window.get(next) : owed.peek();
        if (first == null || first.header().kind() == BulkFrame.RESET || first.header().sequence() <= sequence) {
            return;
        }
        BulkFrame before = first.header();
        if (before.kind() == BulkFrame.LOST) {
            owed.remove();
            Messages.Lost rest = Messages.Lost.decode(first.bytes());
            owed.addFirst(lost(before, sequence, offset, rest));
            lost.add(new LostRange(offset, before.offset(), before.sequence() - sequence, CAUSE_AWAY));
        } else if (before.kind() != BulkFrame.START) {
            owed.addFirst(lost(before, sequence, offset, new Messages.Lost(before.sequence(), before.offset(), CAUSE_AWAY)));
            lost.add(new LostRange(offset, before.offset(), before.sequence() - sequence, CAUSE_AWAY));
        }
    }

    private static Framed lost(BulkFrame as, long sequence, long offset, Messages.Lost rest) {
        ByteBuffer payload = rest.encode();
        return Framed.of(BulkFrame.checked(BulkFrame.LOST, as.session(), as.transfer(), sequence, offset, payload), payload);
    }

    /** Leaves out all data that it was not sent yet; starts and ends stay. */
    void skip(SendWindow window, int cause) {
        BulkFrame first = null;
        for (long each = Math.max(next, window.first()); each < window.end(); each++) {
            Framed framed = window.get(each);
            if (framed.header().kind() == BulkFrame.DATA) {
                first = first == null ? framed.header() : first;
                continue;
            }
            leave(first, framed.header().sequence(), framed.header().offset(), cause);
            first = null;
            owed.add(framed);
        }
        if (first != null) {
            Framed last = window.get(window.end() - 1);
            leave(first, window.end(), last.header().offset() + last.bytes().remaining(), cause);
        }
        next = window.end();
        hold = window.end();
        if (owed.size() > OWED) {
            cut(Cut.TOO_FAR_BEHIND, "is too far behind: the list of missing ranges is full");
        } else if (status == Status.LIVE) {
            turn(Status.LAGGING, "too slow: data is left out");
        }
    }

    /** Owes a report of data from a frame up to a sequence and a byte; one just before it grows. */
    private void leave(BulkFrame first, long nextSequence, long nextOffset, int cause) {
        if (first == null) {
            return;
        }
        lost.add(new LostRange(first.offset(), nextOffset, nextSequence - first.sequence(), cause));
        BulkFrame from = first;
        if (!owed.isEmpty() && owed.peekLast().header().kind() == BulkFrame.LOST && end(owed.peekLast()) == first.sequence()) {
            from = owed.removeLast().header();
        }
        owed.add(lost(first, from.sequence(), from.offset(), new Messages.Lost(nextSequence, nextOffset, cause)));
    }

    /** Notes that a receiver for which data was left out has taken all. */
    void caughtUp(SendWindow window) {
        if (status == Status.LAGGING && !hasUnsent(window)) {
            hold = Math.max(hold, acked);
            turn(Status.LIVE, "");
        }
    }

    /** Notes a broken connection. */
    void broken(String reason) {
        close();
        if (!owedInFlight.isEmpty()) {
            for (int index = owedInFlight.size() - 1; index >= 0; index--) {
                if (owedInFlight.get(index).header().kind() != BulkFrame.PING) {
                    owed.addFirst(owedInFlight.get(index));
                }
            }
            owedInFlight.clear();
        }
        if (takesPart()) {
            turn(Status.BROKEN, reason);
        } else if (status != Status.CUT) {
            turn(Status.CONNECTING, reason);
        }
    }

    /** Cuts it from the rest of the transfer. */
    void cut(Cut cause, String reason) {
        close();
        owed.clear();
        owedInFlight.clear();
        turn(Status.CUT, reason);
        cut = cause;
        cutWhy = reason;
    }

    void close() {
        if (wire != null) {
            wire.closeQuietly();
            wire = null;
        }
    }

    /** Ends a broken connection's time. */
    void tend(SendWindow window, boolean isOpen, long resume) {
        if (status != Status.BROKEN) {
            return;
        }
        if (answered >= window.end() && !isOpen) {
            // No transfer is open between the two.
            turn(Status.CONNECTING, why);
        } else if (isRemoved) {
            cut(Cut.LEFT, "it has left");
        } else if (System.nanoTime() - since >= resume) {
            cut(Cut.AWAY, "its connection was away for too long");
        }
    }

    /** Drops all unsent frames, and sends this reset. */
    void reset(Framed reset, SendWindow window) {
        owed.clear();
        owed.add(reset);
        lastReset = reset;
        next = window.end();
        hold = window.end();
    }

    boolean hasUnsent(SendWindow window) {
        return wire != null && (!owed.isEmpty() || sends() && next < window.end());
    }

    /** Returns whether the kernel has all frames. */
    boolean hasTakenAll(SendWindow window) {
        return next >= window.end() && owed.isEmpty() && !isWriting;
    }

    /** Owes a sign of life, with the sender's patience. */
    void ping(int session, ByteBuffer patience, long past) {
        owed.add(Framed.of(BulkFrame.checked(BulkFrame.PING, session, past, next, 0, patience), patience));
    }

    /** Takes an answer. {@code start} is the first frame of the running transfer. */
    void take(BulkFrame header, ByteBuffer payload, SendWindow window, long transfer, long start) {
        switch (header.kind()) {
            case BulkFrame.ACK -> acknowledged(header, window, transfer, start);
            case BulkFrame.FAULT -> {
                // A late fault of an earlier transfer does not count for this one.
                if (header.transfer() == transfer || header.transfer() == 0) {
                    Messages.Fault fault = Messages.Fault.decode(payload);
                    faults.put(fault.kind(), new BulkFault(fault.kind(), fault.count(), fault.text()));
                }
            }
            case BulkFrame.LOST -> {
                if (header.transfer() == transfer) {
                    Messages.Lost range = Messages.Lost.decode(payload);
                    lost.add(new LostRange(header.offset(), range.nextOffset(), Math.max(0, range.nextSequence() - header.sequence()),
                            range.cause()));
                }
            }
            default -> { }
        }
    }

    private void acknowledged(BulkFrame header, SendWindow window, long transfer, long start) {
        if (header.sequence() > window.end()) {
            return;
        }
        if (header.sequence() > answered) {
            answered = header.sequence();
            acked = Math.max(acked, answered);
            hold = Math.max(hold, acked);
            progress = System.nanoTime();
            if (header.transfer() == transfer && header.sequence() == start + 1) {
                from = header.offset();
            }
        }
        if (header.transfer() == transfer) {
            ackedBytes = Math.max(ackedBytes, header.offset());
        }
    }

    /** Returns the result of the transfer with this stop. */
    BulkDelivery delivery(long stop) {
        BulkFault refusal = faults.get(GAVE_UP);
        Outcome outcome;
        if (refusal != null) {
            outcome = Outcome.REFUSED;
        } else if (cut != null) {
            outcome = cut == Cut.AWAY || cut == Cut.LEFT ? Outcome.GONE : Outcome.CUT;
        } else if (!lost.isEmpty()) {
            outcome = Outcome.INCOMPLETE;
        } else {
            outcome = answered > stop ? Outcome.COMPLETE : Outcome.GONE;
        }
        String reason = switch (outcome) {
            case COMPLETE -> "";
            case REFUSED -> refusal.text();
            case INCOMPLETE -> lost.bytes() + " bytes were lost";
            case CUT, GONE -> reason();
        };
        return new BulkDelivery(source, target.address(), outcome, cut, ackedBytes, lost.list(), List.copyOf(faults.values()),
                reason);
    }

    /** Returns the result of a transfer that the sender gives up. */
    BulkDelivery givenUp(String reason) {
        return new BulkDelivery(source, target.address(), Outcome.INCOMPLETE, cut, ackedBytes, lost.list(),
                List.copyOf(faults.values()), reason);
    }
}
