package org.tampu.internal.bulk;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.tampu.bulk.BulkDelivery;
import org.tampu.bulk.BulkDelivery.Cut;
import org.tampu.bulk.BulkException;
import org.tampu.bulk.BulkReport;
import org.tampu.bulk.BulkStarted;
import org.tampu.bulk.BulkTarget;
import org.tampu.bulk.Protection;
import org.tampu.internal.bulk.SendLink.Status;
import org.tampu.internal.bulk.SendWindow.Framed;

/**
 * A sender's flow. The calling thread copies data into the window; a thread for each receiver writes it. One call runs at
 * a time.
 */
public final class SendFlow {
    /** Source of a piece of data, which fills the given buffer. */
    public interface Filler {
        /** Fills the buffer. */
        void fill(ByteBuffer into) throws IOException;
    }

    private static final long TURN = 50_000_000;
    /** Bytes that the fastest receiver's socket may be behind. They stay in a processor's cache. */
    private static final long LEAD = 1 << 20;
    /** Interval of frames that request an acknowledgement. */
    private static final long ASK_EVERY = SendWindow.FRAMES / 16;
    private static final long CLOSE_NANOS = 3_000_000_000L;
    private static final int CAUSE_SLOW = 2;
    private static final int CAUSE_AWAY = 3;
    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

    final SendSettings settings;
    final byte[] incarnation;
    final int session = new SecureRandom().nextInt();
    final ReentrantLock lock = new ReentrantLock();
    /** Signalled when a link may have something to write. */
    final Condition work = lock.newCondition();
    /** Signalled when a link has made progress. */
    final Condition progress = lock.newCondition();
    final SendWindow window;
    final Numbering numbering;
    private final ReentrantLock calls = new ReentrantLock();
    private final Map<String, SendLink> links = new LinkedHashMap<>();
    private final SendControl control;
    private final ByteBuffer patience;
    private boolean checked;
    private long began;
    private long start;
    /** Bytes since the last frame that requests an acknowledgement. */
    private long unasked;
    private boolean ended;
    private boolean closing;

    /** Opens a flow without receivers. */
    public SendFlow(SendSettings settings, byte[] incarnation) {
        this.settings = settings;
        this.incarnation = incarnation;
        this.checked = settings.checked();
        window = new SendWindow(settings.window(), settings.frame());
        numbering = new Numbering(session, settings.frame());
        control = new SendControl(settings.rate());
        patience = settings.slow().limit() == null ? NOTHING
                : new Messages.Patience((int) Math.min(settings.slow().limit().toMillis(), Integer.MAX_VALUE),
                        (int) Math.min(settings.ackWait() / 1_000_000, Integer.MAX_VALUE)).encode();
    }

    /** Adds a receiver under this key, which gives no passes. */
    public void add(String key, BulkTarget target, Protection protection) {
        add(key, target, protection, null);
    }

    /** Adds a receiver under this key, with the protection that it declares, and the place where it gives passes. */
    void add(String key, BulkTarget target, Protection protection, PassOffice passes) {
        lock.lock();
        try {
            SendLink known = links.get(key);
            if (known != null && (!known.isRemoved || known.isConnected())) {
                // It was thought dead during a network cut; its connection has survived.
                known.isRemoved = false;
            } else if (!ended) {
                SendLink link = new SendLink(target, protection, passes);
                // The report still names the receiver that had this key.
                SendLink before = links.put(key, link);
                if (before != null) {
                    links.put(key + " before " + System.nanoTime(), before);
                }
                new SendConnection(this, link).start();
            }
        } finally {
            lock.unlock();
        }
    }

    /** Removes a receiver. It keeps the data that it has received. */
    public void remove(String key) {
        lock.lock();
        try {
            if (links.get(key) != null) {
                links.get(key).isRemoved = true;
                signal();
            }
        } finally {
            lock.unlock();
        }
    }

    void signal() {
        work.signalAll();
        progress.signalAll();
    }

    boolean wants(SendLink link) {
        return !closing && (!link.isRemoved || link.isConnected());
    }

    boolean isClosing() {
        return closing;
    }

    /** Notes a new connection; the lock is held. */
    void attach(SendLink link, Wire wire, Messages.Welcome welcome) {
        checked |= (welcome.options() & 1) != 0;
        BulkFrame reset = new BulkFrame(BulkFrame.RESET, 0, session, 0, numbering.transfer(), window.end() - 1, numbering.offset(), 0);
        link.attach(wire, welcome, window, reset);
        if (link.takesPart()) {
            numbering.fit(Math.min(numbering.frame(), link.frame));
        }
        link.ping(session, patience, link.takesPart() ? 0 : numbering.transfer());
        signal();
    }

    /** Takes a receiver's answer; the lock is held. */
    void take(SendLink link, BulkFrame header, ByteBuffer payload) {
        link.take(header, payload, window, numbering.transfer(), start);
        release();
        progress.signalAll();
    }

    /** Keeps a link's times; the lock is held. */
    void tend(SendLink link) {
        link.tend(window, numbering.phase() == Numbering.Phase.DATA, settings.resume());
        if (link.isConnected() && link.owed.isEmpty() && !link.isWriting && System.nanoTime() - link.lastWrite >= 1_000_000_000L) {
            link.ping(session, patience, 0);
        }
        release();
    }

    private void release() {
        long held = window.end();
        for (SendLink link : links.values()) {
            held = link.takesPart() ? Math.min(held, link.hold) : held;
        }
        window.release(held);
    }

    private long connected() {
        return links.values().stream().filter(SendLink::isConnected).count();
    }

    private String all(Predicate<SendLink> which) {
        return links.values().stream().filter(which).map(link -> link.name() + ": " + link.reason()).collect(Collectors.joining("; "));
    }

    private BulkException failure(BulkException.Kind kind, String text) {
        return new BulkException(kind, "flow '" + settings.flow() + "' " + text);
    }

    private void checkOpen() throws BulkException {
        if (ended) {
            throw failure(BulkException.Kind.CLOSED, "was closed");
        }
    }

    private void checkGoesOn() throws BulkException {
        checkOpen();
        if (control.isCancelled()) {
            throw failure(BulkException.Kind.CANCELLED, "was stopped by a command");
        }
    }

    private void begin() throws BulkException {
        try {
            calls.lockInterruptibly();
            lock.lock();
        } catch (InterruptedException interrupted) {
            throw interrupted();
        }
    }

    private void end() {
        lock.unlock();
        calls.unlock();
    }

    private BulkException interrupted() {
        Thread.currentThread().interrupt();
        return failure(BulkException.Kind.INTERRUPTED, "was interrupted while it waited");
    }

    /** Calls this with the lock held, and wakes the waiting calls. */
    <T> T controlled(Function<SendControl, T> work) {
        lock.lock();
        try {
            T result = work.apply(control);
            signal();
            return result;
        } finally {
            lock.unlock();
        }
    }

    /** Returns the links; the lock is held. */
    Iterable<SendLink> links() {
        return links.values();
    }

    /** Waits until so many receivers are connected; returns whether they are. */
    public boolean waitFor(int receivers, long nanos) throws BulkException {
        long until = System.nanoTime() + nanos;
        lock.lock();
        try {
            while (connected() < receivers) {
                long left = until - System.nanoTime();
                if (left <= 0 || ended || control.isCancelled()) {
                    return false;
                }
                progress.awaitNanos(Math.min(left, TURN));
            }
            return true;
        } catch (InterruptedException interrupted) {
            throw interrupted();
        } finally {
            lock.unlock();
        }
    }

    /** Begins a transfer, and waits until its receivers have taken the parameter. */
    public BulkStarted start(ByteBuffer parameter) throws BulkException {
        lock.lock();
        try {
            checkOpen();
            numbering.mayStart(0);
        } finally {
            lock.unlock();
        }
        if (settings.receivers() > 0 && !waitFor(settings.receivers(), settings.connectWait())) {
            lock.lock();
            try {
                checkGoesOn();
                String reasons = all(link -> !link.isConnected());
                throw failure(BulkException.Kind.NO_RECEIVER, "needs " + settings.receivers() + " receivers and has " + connected()
                        + (reasons.isEmpty() ? "" : "; " + reasons));
            } finally {
                lock.unlock();
            }
        }
        begin();
        try {
            checkGoesOn();
            if (numbering.phase() != Numbering.Phase.DATA) {
                numbering.fit(links.values().stream().filter(link -> link.takesPart() || link.status == Status.WAITING)
                        .mapToInt(link -> link.frame).min().orElse(Integer.MAX_VALUE));
            }
            numbering.mayStart(parameter.remaining());
            // Before the frame is numbered, so that an interrupted wait leaves the flow as it was.
            await(() -> window.hasRoom(parameter.remaining()), -1);
            BulkFrame header = numbering.start(parameter, checked);
            links.values().removeIf(link -> link.isRemoved && !link.isConnected() && !link.takesPart());
            began = System.nanoTime();
            start = header.sequence();
            links.values().forEach(link -> link.start(header.transfer(), header.sequence()));
            push(Framed.of(header, parameter));
            acknowledged(header.sequence());
            List<SendLink> part = links.values().stream().filter(SendLink::takesPart).toList();
            if (part.isEmpty() && settings.receivers() > 0) {
                String reasons = all(link -> true);
                window.push(Framed.of(numbering.reset(), NOTHING));
                release();
                throw failure(BulkException.Kind.NOBODY_LEFT, "has no receiver left (" + reasons + ")");
            }
            return new BulkStarted(header.transfer(), part.size(), part.stream().mapToLong(link -> link.from).min().orElse(0));
        } finally {
            end();
        }
    }

    /** Sets the first byte of the data. */
    public void beginAt(long offset) throws BulkException {
        begin();
        try {
            checkOpen();
            numbering.beginAt(offset);
        } finally {
            end();
        }
    }

    /** Sends a block of this length, which is cut into frames; an empty one is an empty frame. */
    public void send(long length, Filler filler, boolean endsBlock) throws IOException {
        begin();
        try {
            long left = length;
            do {
                int taken = (int) Math.min(left, numbering.frame());
                left -= taken;
                piece(taken, filler, left == 0 && endsBlock);
            } while (left > 0);
        } finally {
            end();
        }
    }

    private void piece(int length, Filler filler, boolean endsBlock) throws IOException {
        checkOpen();
        numbering.maySend("send");
        whilePaused();
        Arena.Region[] region = new Arena.Region[1];
        await(() -> window.hasRoom(length) && (length == 0 || (region[0] = window.arena().take(length)) != null), -1);
        ByteBuffer bytes = region[0] == null ? NOTHING : region[0].bytes();
        // Copying and the checksum take most of the time of a call; receivers are served meanwhile.
        boolean isChecked = checked;
        BulkFrame summed = null;
        lock.unlock();
        try {
            if (length > 0) {
                filler.fill(bytes.duplicate());
            }
            summed = BulkFrame.of(BulkFrame.DATA, 0, session, 0, 0, 0, bytes, isChecked);
        } finally {
            lock.lock();
            if (region[0] != null && (summed == null || ended)) {
                window.arena().release(region[0]);
            }
        }
        checkOpen();
        // A receiver may acknowledge less often than a small window, or one of short frames, needs it.
        unasked += length;
        boolean asks = unasked >= settings.window() / 2 || window.end() % ASK_EVERY == 0;
        unasked = asks ? 0 : unasked;
        int flags = (endsBlock ? BulkFrame.END_OF_BLOCK : 0) | (asks ? BulkFrame.ASK : 0);
        push(new Framed(numbering.data(flags, bytes, summed), bytes, region[0]));
        await(() -> {
            boolean isSomebody = false;
            for (SendLink link : links.values()) {
                if (link.status == Status.LIVE && link.isConnected()) {
                    isSomebody = true;
                    if (window.bytesFrom(link.next) <= LEAD) {
                        return true;
                    }
                }
            }
            return !isSomebody;
        }, -1);
        control.sent(length, System.nanoTime());
        pause(control.throttle().sent(length, System.nanoTime()));
        // Also after the last frame: otherwise a stop between two short blocks would be lost.
        checkGoesOn();
        if (settings.receivers() > 0 && links.values().stream().noneMatch(SendLink::takesPart)) {
            throw failure(BulkException.Kind.NOBODY_LEFT, "has no receiver left (" + all(link -> true) + ")");
        }
    }

    private void push(Framed framed) {
        window.push(framed);
        release();
        work.signalAll();
    }

    private void pause(long nanos) throws BulkException {
        long until = System.nanoTime() + nanos;
        try {
            Throttle throttle = control.throttle();
            for (long left = nanos; left > 0 && !ended && !control.isCancelled() && throttle == control.throttle();
                    left = until - System.nanoTime()) {
                progress.awaitNanos(left);
            }
        } catch (InterruptedException interrupted) {
            throw interrupted();
        }
    }

    /** Waits for the end of a pause. Connections send their signs of life meanwhile. */
    private void whilePaused() throws BulkException {
        try {
            while (control.isPaused() && !ended && !control.isCancelled()) {
                progress.awaitNanos(TURN);
            }
        } catch (InterruptedException interrupted) {
            throw interrupted();
        }
        checkGoesOn();
    }

    private void acknowledged(long sequence) throws BulkException {
        await(() -> links.values().stream().filter(SendLink::takesPart).allMatch(link -> link.answered > sequence), settings.ackWait());
    }

    /** Waits for a condition, and cuts receivers that take too long; -1 counts by the policy for data. */
    private void await(BooleanSupplier done, long ackWait) throws BulkException {
        long since = System.nanoTime();
        try {
            while (!ended && !done.getAsBoolean()) {
                markHolders();
                long before = System.nanoTime();
                progress.awaitNanos(TURN);
                long passed = System.nanoTime() - before;
                links.values().forEach(this::tend);
                judge(since, passed, ackWait);
            }
        } catch (InterruptedException interrupted) {
            throw interrupted();
        }
        checkOpen();
    }

    /** Finds the receivers whose full window stops others. */
    private void markHolders() {
        boolean isFull = !window.hasRoom(numbering.frame());
        boolean areOthersReady = links.values().stream().anyMatch(link -> link.status == Status.LIVE && !window.isFarBehind(link.acked));
        for (SendLink link : links.values()) {
            link.holdsOthers = isFull && areOthersReady && link.takesPart() && link.hold <= window.first();
        }
    }

    /** Cuts a slow receiver, or leaves out what it was not sent. */
    private void leaveBehind(SendLink link, Cut cut, String why) {
        if (settings.slow().skips()) {
            link.skip(window, link.isConnected() ? CAUSE_SLOW : CAUSE_AWAY);
        } else {
            link.cut(cut, why);
        }
    }

    private void judge(long began, long passed, long ackWait) {
        boolean isFull = !window.hasRoom(numbering.frame());
        long wait = settings.slow().limit() == null ? Long.MAX_VALUE : settings.slow().limit().toNanos();
        long now = System.nanoTime();
        for (SendLink link : links.values()) {
            link.heldOthers += link.holdsOthers ? passed : 0;
            if (!link.takesPart()) {
                continue;
            }
            long stuck = now - (began - link.progress > 0 ? began : link.progress);
            if (link.status == Status.LAGGING && isFull && link.hold <= window.first()) {
                link.skip(window, CAUSE_SLOW);
            } else if (link.holdsOthers && link.heldOthers > wait) {
                leaveBehind(link, Cut.SLOW, "held up the others for " + seconds(wait) + " s");
            } else if (ackWait < 0) {
                if (stuck > wait && (link.hold <= window.first() || !link.hasTakenAll(window))) {
                    leaveBehind(link, Cut.SEND_TIMEOUT, "took nothing for " + seconds(wait) + " s");
                }
            } else if (wait != Long.MAX_VALUE && link.sends() && link.acked < window.end() && stuck > ackWait) {
                link.cut(Cut.ACK_TIMEOUT, "acknowledged nothing for " + seconds(ackWait) + " s");
            }
        }
        release();
    }

    private static String seconds(long nanos) {
        return nanos % 1_000_000_000L == 0 ? String.valueOf(nanos / 1_000_000_000L) : String.valueOf(nanos / 1e9);
    }

    /** Ends the transfer, and waits until every receiver has everything. */
    public BulkReport stop() throws BulkException {
        begin();
        try {
            checkOpen();
            numbering.maySend("stop");
            await(() -> window.hasRoom(0), -1);
            BulkFrame header = numbering.stop(checked);
            control.transferEnded();
            push(Framed.of(header, NOTHING));
            acknowledged(header.sequence());
            return report(link -> link.delivery(header.sequence()));
        } finally {
            end();
        }
    }

    private BulkReport report(Function<SendLink, BulkDelivery> delivery) {
        List<BulkDelivery> deliveries = links.values().stream().filter(link -> link.tookPart == numbering.transfer()).map(delivery).toList();
        return new BulkReport(settings.flow(), numbering.transfer(), numbering.offset(), (System.nanoTime() - began) / 1e9, deliveries);
    }

    /** Gives the transfer up; receivers get a reset, and no more of its data. Returns the result, or null without a transfer. */
    public BulkReport reset() throws BulkException {
        begin();
        try {
            checkOpen();
            if (numbering.phase() != Numbering.Phase.DATA) {
                return null;
            }
            BulkReport report = report(link -> link.givenUp("its sender has given it up"));
            Framed reset = Framed.of(numbering.reset(), NOTHING);
            control.transferEnded();
            window.push(reset);
            for (SendLink link : links.values()) {
                // A receiver without its start gets everything in order: the frames before it were not given up.
                if (link.takesPart() && link.acked > start) {
                    link.reset(reset, window);
                }
            }
            release();
            work.signalAll();
            return report;
        } finally {
            end();
        }
    }

    /**
     * Ends the flow: sends what is unsent, and waits a bounded time until receivers have read it.
     * Returns the result of a transfer that this gives up, or null.
     */
    public BulkReport close() {
        lock.lock();
        try {
            if (ended) {
                return null;
            }
            ended = true;
            BulkReport report = null;
            if (numbering.phase() == Numbering.Phase.DATA) {
                report = report(link -> link.givenUp("its sender was closed"));
                // The reset stands behind the data, which is delivered if that takes little time.
                window.push(Framed.of(numbering.reset(), NOTHING));
            }
            signal();
            long until = System.nanoTime() + CLOSE_NANOS;
            awaitAll(until, link -> link.hasUnsent(window) || link.isConnected() && link.isWriting);
            links.values().stream().filter(SendLink::isConnected).forEach(link -> link.wire.finishQuietly());
            closing = true;
            signal();
            // A connection that is closed before its answers were read takes data from the receiver.
            awaitAll(until, SendLink::isConnected);
            links.values().forEach(SendLink::close);
            links.values().forEach(link -> link.isRemoved = true);
            window.release(window.end());
            signal();
            return report;
        } finally {
            lock.unlock();
        }
    }

    private void awaitAll(long until, Predicate<SendLink> busy) {
        boolean interrupted = false;
        for (long left = until - System.nanoTime(); left > 0 && links.values().stream().anyMatch(busy); left = until - System.nanoTime()) {
            try {
                progress.awaitNanos(Math.min(left, TURN));
            } catch (InterruptedException again) {
                interrupted = true;
                break;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
