package org.tampu.internal.gateway;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.json.Json;

/**
 * The client's side of a session: counts frames, keeps them until the hub has acknowledged them, and resumes after a
 * lost connection.
 *
 * <p>Two threads belong to it. One connects and reads. The other one sends the beat. A thread of all sessions ends
 * connections on which the hub is silent. Handlers are called by the reading thread, so they only hand things on.
 */
public final class Session implements AutoCloseable {
    /** Bytes of frames that may wait for the hub's acknowledgement before senders wait. */
    private static final int WINDOW = 8 << 20;
    /** Counted bytes after which an acknowledgement is due. */
    private static final int ACK_BYTES = 64 << 10;
    /** Kinds whose frames hold as many bytes as the program likes. The frames of other kinds are few and small. */
    private static final List<Integer> BOUNDED = List.of(Frame.PUBLISH, Frame.ASK, Frame.ANSWER);
    private static final long SHORTEST_PAUSE = 50;
    private static final long LONGEST_PAUSE = 5000;
    /** Time within which a hub answers HELLO, ms. */
    private static final long GREETING = 10_000;
    /** Longest wait for BYE to be written, ms. */
    private static final long FAREWELL = 2000;
    private static final ScheduledThreadPoolExecutor WATCH = new ScheduledThreadPoolExecutor(1, work -> daemon("tampu-gateway-watch", work));

    static {
        WATCH.setRemoveOnCancelPolicy(true);
    }

    /** Makes a connection. */
    public interface Connector {
        Link connect() throws IOException;
    }

    /** One subscription, publisher, question or service. */
    public interface Handler {
        /** Takes a frame of this id. */
        void take(Frame frame);

        /**
         * Begins anew in a new session, because the hub does not know the old one: returns the frame that opens it, or
         * null if it has ended by that.
         */
        Frame renew(int id);

        /** Returns whether a frame that the old hub had not acknowledged is sent once more in a new session, behind {@link #renew}'s. */
        default boolean isSentAgain(Frame frame) {
            return false;
        }

        /** The session has ended for good. */
        void ended(GatewayException why);
    }

    private final Connector connector;
    private final Map<String, Object> hello;
    private final Thread reader;
    private final Thread beat;
    private final Object lock = new Object();
    /** Frames that the hub has not acknowledged, by their order. */
    private final Deque<Frame> unacknowledged = new ArrayDeque<>();
    private long unacknowledgedBytes;
    private final Map<Integer, Handler> handlers = new TreeMap<>();
    private int nextId = 1;
    private long nextNumber = 1;
    private long received;
    private long heardAt;
    private long unackedIn;
    /** The connection, from HELLO on. */
    private Link link;
    /** The frames that wait for it; null until the hub has answered HELLO. */
    private Outgoing outgoing;
    private final long greeting;
    private final Future<?> watch;
    private String session;
    private Map<String, Object> welcome = Map.of();
    private GatewayException end;
    private boolean closing;

    /** Starts to connect; {@link #awaitWelcome} waits for the first answer. */
    public Session(Connector connector, Map<String, Object> hello) {
        this(connector, hello, GREETING);
    }

    /** Starts to connect to hubs that have so many milliseconds for their answer to HELLO. */
    Session(Connector connector, Map<String, Object> hello, long greeting) {
        this.connector = connector;
        this.hello = new LinkedHashMap<>(hello);
        this.greeting = greeting;
        reader = daemon("tampu-gateway", this::run);
        beat = daemon("tampu-gateway-beat", this::beat);
        long period = Math.min(500, greeting / 2);
        watch = WATCH.scheduleWithFixedDelay(this::watch, period, period, TimeUnit.MILLISECONDS);
        reader.start();
        beat.start();
    }

    private static Thread daemon(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        return thread;
    }

    /** Waits until a hub has answered. */
    public Map<String, Object> awaitWelcome(long millis) throws GatewayException {
        long until = System.nanoTime() + millis * 1_000_000;
        synchronized (lock) {
            while (welcome.isEmpty() && end == null) {
                waitOnLock(until, "no hub answered");
            }
            if (end != null) {
                throw end;
            }
            return welcome;
        }
    }

    private void waitOnLock(long until, String what) throws GatewayException {
        long left = until - System.nanoTime();
        if (left <= 0) {
            throw new GatewayException("unanswered", what + " in time");
        }
        try {
            lock.wait(left / 1_000_000 + 1);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new GatewayException("interrupted", what + ": the waiting thread was interrupted");
        }
    }

    /**
     * Opens a subscription, publisher or question; the handler's {@code renew} makes the frame. Returns its id. A question
     * waits while the hub is behind.
     */
    public int open(Handler handler, IntFunction<Frame> frame) throws GatewayException {
        int id;
        synchronized (lock) {
            while (handlers.containsKey(nextId) || nextId <= 0) {
                nextId = nextId <= 0 ? 1 : nextId + 1;
            }
            id = nextId++;
            Frame first = frame.apply(id);
            awaitRoom(first, Long.MAX_VALUE);
            // A session that began anew during the wait has not seen this handler.
            handlers.put(id, handler);
            sendOnce(first);
        }
        drain();
        return id;
    }

    /** Forgets an id whose ENDED has come. */
    public void forget(int id) {
        synchronized (lock) {
            handlers.remove(id);
        }
    }

    /**
     * Sends a counted frame. Those with data of the program wait while the hub is behind; an interruption of the wait is a
     * failure with the code {@code interrupted}, and the frame is not sent.
     */
    public void send(Frame frame) throws GatewayException {
        send(frame, Long.MAX_VALUE);
    }

    /** Sends a counted frame; waits at most so long while the hub is behind. Returns whether it is on its way. */
    public boolean send(Frame frame, long waitNanos) throws GatewayException {
        synchronized (lock) {
            if (!awaitRoom(frame, waitNanos)) {
                return false;
            }
            sendOnce(frame);
        }
        drain();
        return true;
    }

    /**
     * Sends a counted frame if a condition still holds when the frame gets its number. Waits as {@link #send} does. The
     * condition is asked with the session's lock held, as {@link Handler#renew} is called. Returns whether the frame is on
     * its way.
     */
    public boolean sendIf(Frame frame, BooleanSupplier condition) throws GatewayException {
        synchronized (lock) {
            awaitRoom(frame, Long.MAX_VALUE);
            if (!condition.getAsBoolean()) {
                return false;
            }
            sendOnce(frame);
        }
        drain();
        return true;
    }

    /** Waits for room if the frame needs some; the lock is held. Returns false if there was none in time. */
    private boolean awaitRoom(Frame frame, long waitNanos) throws GatewayException {
        boolean waits = BOUNDED.contains(frame.kind()) && Thread.currentThread() != reader;
        long begun = System.nanoTime();
        while (waits && end == null && !closing && unacknowledgedBytes > WINDOW) {
            long left = waitNanos - (System.nanoTime() - begun);
            if (left <= 0) {
                return false;
            }
            try {
                lock.wait(Math.min(1000, left / 1_000_000 + 1));
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                throw new GatewayException("interrupted", "the hub is behind, and the waiting thread was interrupted: nothing was sent");
            }
        }
        if (end != null || closing) {
            throw end != null ? end : new GatewayException("done", "the session is closed");
        }
        return true;
    }

    /** Adds a frame for a hub that has answered; the lock is held. */
    private void write(Frame frame) {
        if (outgoing != null) {
            outgoing.add(frame);
        }
    }

    /** Writes what was added; the lock is not held. */
    private void drain() {
        Outgoing mine;
        synchronized (lock) {
            mine = outgoing;
        }
        if (mine != null) {
            Thread own = Thread.currentThread();
            mine.drain(own != reader && own != beat);
        }
    }

    private void drop() {
        Link gone;
        synchronized (lock) {
            gone = link;
            link = null;
            if (outgoing != null) {
                outgoing.end();
                outgoing = null;
            }
        }
        if (gone != null) {
            try {
                gone.close();
            } catch (IOException over) {
                // It is gone, which is what was wanted.
            }
        }
    }

    /** Ends a connection on which the hub is silent. */
    private void watch() {
        synchronized (lock) {
            long silence = (System.nanoTime() - heardAt) / 1_000_000;
            if (link == null || silence <= (outgoing == null ? greeting : 3 * Json.number(welcome, "beat_ms", 2000))) {
                return;
            }
        }
        drop();
    }

    /** Returns why the session has ended for good, or null. */
    public GatewayException end() {
        synchronized (lock) {
            return end;
        }
    }

    /** Returns the bytes that wait for the hub. */
    public long waiting() {
        synchronized (lock) {
            return unacknowledgedBytes;
        }
    }

    /** Waits until the hub has received all that was sent; returns whether it has. */
    public boolean flush(long millis) {
        long until = System.nanoTime() + millis * 1_000_000;
        synchronized (lock) {
            while (!unacknowledged.isEmpty() && end == null) {
                try {
                    waitOnLock(until, "the hub is behind");
                } catch (GatewayException late) {
                    return false;
                }
            }
            return end == null;
        }
    }

    private void run() {
        long pause = SHORTEST_PAUSE;
        while (true) {
            try (Link made = connector.connect()) {
                converse(made);
                pause = SHORTEST_PAUSE;
            } catch (IOException | IllegalArgumentException lost) {
                // Connected again below; only the hub's BYE is final.
            }
            drop();
            synchronized (lock) {
                if (closing || end != null) {
                    lock.notifyAll();
                    break;
                }
                try {
                    lock.wait(pause / 2 + ThreadLocalRandom.current().nextLong(pause / 2 + 1));
                } catch (InterruptedException interrupted) {
                    closing = true;
                }
                pause = Math.min(2 * pause, LONGEST_PAUSE);
            }
        }
        List<Handler> left;
        synchronized (lock) {
            left = new ArrayList<>(handlers.values());
            handlers.clear();
            end = end != null ? end : new GatewayException("done", "the session is closed");
        }
        watch.cancel(false);
        left.forEach(handler -> handler.ended(end));
    }

    private void converse(Link made) throws IOException {
        Map<String, Object> greeting = new LinkedHashMap<>(hello);
        synchronized (lock) {
            if (closing) {
                return;
            }
            link = made;
            heardAt = System.nanoTime();
            if (session != null) {
                greeting.put("session", session);
                greeting.put("received", Long.toUnsignedString(received));
            }
        }
        made.write(Frame.of(Frame.HELLO, 0, greeting).encode());
        ByteBuffer bytes = ByteBuffer.allocate(256 << 10);
        while (made.read(bytes) >= 0) {
            bytes.flip();
            for (Frame frame = Frame.decode(bytes); frame != null; frame = Frame.decode(bytes)) {
                take(made, frame);
            }
            int needed = bytes.remaining() >= Frame.HEADER ? bytes.getInt(bytes.position()) + Frame.HEADER : 0;
            if (needed > bytes.capacity()) {
                bytes = ByteBuffer.allocate(needed).put(bytes);
            } else {
                bytes.compact();
            }
        }
    }

    private void take(Link made, Frame frame) throws IOException {
        Handler handler = null;
        synchronized (lock) {
            heardAt = System.nanoTime();
            switch (frame.kind()) {
                case Frame.WELCOME -> welcome(made, frame);
                case Frame.ACK -> acknowledged(frame.value());
                case Frame.BYE -> bye(frame.json());
                default -> {
                    if (!frame.isCounted() || frame.number() <= received) {
                        return;
                    }
                    if (frame.number() != received + 1) {
                        throw new IOException("frame " + frame.number() + " after frame " + received);
                    }
                    received = frame.number();
                    unackedIn += Frame.HEADER + frame.body().length;
                    handler = handlers.get(frame.id());
                }
            }
        }
        if (handler != null) {
            handler.take(frame);
        }
        synchronized (lock) {
            if (unackedIn >= ACK_BYTES) {
                acknowledge();
            }
        }
        drain();
    }

    private void acknowledge() {
        unackedIn = 0;
        write(Frame.of(Frame.ACK, 0, received));
    }

    private void welcome(Link made, Frame frame) {
        Map<String, Object> answer = frame.json();
        long version = Json.number(answer, "version", 0);
        if (hello.get("versions") instanceof List<?> versions && versions.stream().noneMatch(one -> ((Number) one).longValue() == version)) {
            end = new GatewayException("version", otherVersion("the hub chose version " + version + " of the gateway's protocol"));
            drop();
            lock.notifyAll();
            return;
        }
        welcome = answer;
        boolean isResumed = Boolean.TRUE.equals(welcome.get("resumed"));
        List<Frame> left = new ArrayList<>(unacknowledged);
        if (session != null && !isResumed) {
            // The hub does not know the session: everything begins anew.
            unacknowledged.clear();
            unacknowledgedBytes = 0;
            nextNumber = 1;
            received = 0;
        } else {
            acknowledged(Json.number(welcome, "received", 0));
        }
        boolean isNew = session != null && !isResumed;
        session = Json.text(welcome, "session", "");
        outgoing = new Outgoing(lock, made);
        unacknowledged.forEach(this::write);
        if (isNew) {
            for (var each : new ArrayList<>(handlers.entrySet())) {
                Frame again = each.getValue().renew(each.getKey());
                if (again == null) {
                    handlers.remove(each.getKey());
                    continue;
                }
                sendOnce(again);
            }
            for (Frame one : left) {
                Handler handler = handlers.get(one.id());
                if (handler != null && handler.isSentAgain(one)) {
                    sendOnce(one);
                }
            }
        }
        lock.notifyAll();
    }

    /** Sends a counted frame; the lock is held. */
    private void sendOnce(Frame frame) {
        Frame counted = frame.counted(nextNumber++);
        unacknowledged.add(counted);
        unacknowledgedBytes += Frame.HEADER + counted.body().length;
        write(counted);
    }

    private void acknowledged(long number) {
        while (!unacknowledged.isEmpty() && unacknowledged.peek().number() <= number) {
            unacknowledgedBytes -= Frame.HEADER + unacknowledged.remove().body().length;
        }
        lock.notifyAll();
    }

    private void bye(Map<String, Object> body) {
        String code = Json.text(body, "code", "done");
        // A hub that stops is met again, as after a lost connection.
        if (!code.equals("stopping")) {
            String error = Json.text(body, "error", "the hub ended the session");
            end = new GatewayException(code, code.equals("version") ? otherVersion(error) : error);
        }
        drop();
        lock.notifyAll();
    }

    /** Adds to a hub's words about its version that of this library, and the way out. */
    private String otherVersion(String hub) {
        String own = hello.get("versions") instanceof List<?> versions ? versions.stream().map(String::valueOf).collect(Collectors.joining(", ")) : "";
        return hub + "; " + hello.get("client") + " speaks " + own + ": use the library of the hub's release, or update the hub";
    }

    private void beat() {
        boolean isLast = false;
        while (!isLast) {
            synchronized (lock) {
                long until = System.nanoTime() + Math.max(1, Json.number(welcome, "beat_ms", 2000) / 2) * 1_000_000;
                for (long left = until - System.nanoTime(); left > 0 && !closing && end == null; left = until - System.nanoTime()) {
                    try {
                        lock.wait(Math.min(left / 1_000_000 + 1, 60_000));
                    } catch (InterruptedException interrupted) {
                        // Nobody has this thread to interrupt it.
                    }
                }
                isLast = closing || end != null;
                if (!isLast) {
                    acknowledge();
                } else if (closing) {
                    write(new Frame(Frame.BYE, 0, 0, 0, "{}".getBytes(StandardCharsets.UTF_8)));
                }
            }
            drain();
        }
        Outgoing last;
        synchronized (lock) {
            last = outgoing;
        }
        if (last != null) {
            last.drainAll();
        }
    }

    /** Returns the name under which the session publishes. */
    public String source() {
        return Json.text(hello, "source", "");
    }

    /** Returns the last answer of a hub to HELLO. */
    public Map<String, Object> welcome() {
        synchronized (lock) {
            return welcome;
        }
    }

    /** Cuts the connection as a broken network does; the session resumes. For tests. */
    public void cut() {
        drop();
    }

    /** Ends the session in order. What the hub has not received is lost: {@link #flush} first. */
    @Override
    public void close() {
        synchronized (lock) {
            closing = true;
            lock.notifyAll();
        }
        boolean wasInterrupted = Thread.interrupted();
        try {
            // It writes BYE. A hub that does not read is not waited for.
            beat.join(FAREWELL);
        } catch (InterruptedException interrupted) {
            wasInterrupted = true;
        }
        drop();
        synchronized (lock) {
            lock.notifyAll();
        }
        if (wasInterrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
